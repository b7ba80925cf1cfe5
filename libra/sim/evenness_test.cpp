#include "libra/sim/evenness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using ::testing::ElementsAre;
using testing::sequence;

// 36 and 3 pairs: 36 over the mean of 19.5.
TEST(HeaviestOverMean, IsOfTheWindowsSequences) {
  const std::vector<PackedSequence> window = {sequence({8}), sequence({1, 1, 1})};
  EXPECT_DOUBLE_EQ(heaviest_over_mean(window), 36 / 19.5);
  EXPECT_EQ(heaviest_over_mean(std::vector<PackedSequence>(2, sequence({}))), 1);
}

TEST(MeanRMinus1, IsTheMeanOverWindows) {
  const std::vector<PackedSequence> uneven = {sequence({8}), sequence({1, 1, 1})};
  const std::vector<PackedSequence> even(2, sequence({8}));
  EXPECT_DOUBLE_EQ(mean_r_minus_1({uneven, even}, 1, Grouping::kVrsp), (36 / 19.5 - 1) / 2);
  EXPECT_DOUBLE_EQ(mean_r_minus_1({uneven, even}, 2, Grouping::kVrsp), 0);
}

TEST(SpreadOut, PicksFromTheMostEvenToTheLeast) {
  EXPECT_THAT(spread_out({1, 1, 1, 1, 5, 3, 4}, 3), ElementsAre(1, 3, 6));
  EXPECT_THAT(spread_out({2, 3, 1}, 3), ElementsAre(2, 0, 1));
  EXPECT_THAT(spread_out({2}, 3), ElementsAre(0));
}

}  // namespace
}  // namespace libra
