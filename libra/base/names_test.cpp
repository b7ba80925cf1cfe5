#include "libra/base/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace libra {
namespace {

enum class Fruit : std::uint8_t { kApple, kPear };
constexpr Names<Fruit, 2> kFruits = {{{Fruit::kApple, "apple"}, {Fruit::kPear, "pear"}}};

TEST(Names, GoBothWays) {
  for (const auto& [fruit, name] : kFruits) {
    EXPECT_EQ(name_of(kFruits, fruit), name);
    EXPECT_EQ(parse_name(kFruits, "fruit", name), fruit);
  }
}

TEST(Names, AnUnknownWordIsAnErrorThatListsThem) {
  try {
    parse_name(kFruits, "fruit", "Apple");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "'Apple' is not a fruit: use one of apple, pear");
  }
}

}  // namespace
}  // namespace libra
