#include "libra/base/error.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace libra {
namespace {

TEST(Error, IsOneLineWhateverItRepeats) {
  using std::string_view_literals::operator""sv;
  EXPECT_STREQ(ConfigError("'9\n\0\x7F' is no size"sv).what(), "'9\\x0a\\x00\\x7f' is no size");
  EXPECT_STREQ(InputError("a\rb", "is a \ttable").what(), "a\\x0db: is a \\x09table");
}

TEST(Error, KeepsOtherBytesAsTheyAre) {
  EXPECT_STREQ(Error("sch\xc3\xb6n \\ ~").what(), "sch\xc3\xb6n \\ ~");
}

}  // namespace
}  // namespace libra
