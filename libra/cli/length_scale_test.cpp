#include "libra/cli/length_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/base/error.h"

namespace libra::cli {
namespace {

using testing::ElementsAre;

TEST(LengthScaleTest, FractionsAndDivisorsAreRead) {
  EXPECT_EQ(parse_length_scale("1/128").text(), "1/128");
  EXPECT_EQ(parse_length_scale("128").text(), "1/128");
  EXPECT_EQ(parse_length_scale("2/6").text(), "1/3");
  EXPECT_EQ(parse_length_scale("1/1K").text(), "1/1024");
  EXPECT_EQ(parse_length_scale("1").text(), "1/1");
}

TEST(LengthScaleTest, WhatMakesNothingShorterIsRefused) {
  for (const char* text : {"0", "1/0", "0/1", "2/1", "", "/", "1/", "-1/2", "a/b", "1/2/3"}) {
    EXPECT_THROW(parse_length_scale(text), ConfigError) << text;
  }
}

TEST(LengthScaleTest, RoundsDownButKeepsATokenOfWhatIsNotEmpty) {
  const LengthScale scale{3, 8};
  EXPECT_EQ(scale(0), 0);
  EXPECT_EQ(scale(1), 1);
  EXPECT_EQ(scale(16), 6);
  EXPECT_EQ(scale(17), 6);
  EXPECT_EQ(scale(std::int64_t{1} << 60), (std::int64_t{3} << 57));
}

TEST(LengthScaleTest, AllSequencesGetABudgetThatHoldsTheirSamples) {
  const auto scaled =
      scale_sequences({{64, {1, 1, 0, 1, 1, 1, 1, 1}}, {64, {64}}}, LengthScale{1, 16});
  EXPECT_EQ(scaled[0].tokens, 7);
  EXPECT_EQ(scaled[1].tokens, 7);
  EXPECT_THAT(scaled[0].sample_tokens, ElementsAre(1, 1, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(scaled[1].sample_tokens, ElementsAre(4));
}

}  // namespace
}  // namespace libra::cli
