#include "libra/sim/overlap.h"

#include <gtest/gtest.h>

namespace libra {
namespace {

TEST(OverlappedSeconds, HidesTheShorterSideOfEveryInterval) {
  // Local 5 over dispatch 3; chunks of 4 beside 6, 2, 1; return 7.
  const ChunkedPassTimes pass{5, 4, {3, 6, 2, 1, 7}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(pass, 0), 5 + 6 + 4 + 4 + 7);
  EXPECT_DOUBLE_EQ(sequential_seconds(pass), 5 + 3 * 4 + 3 + 6 + 2 + 1 + 7);
  EXPECT_DOUBLE_EQ(pass.compute_s(), 17);
}

TEST(OverlappedSeconds, TrafficSlowsTheComputationThatItRunsUnder) {
  const ChunkedPassTimes pass{0, 10, {1, 4, 2}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(pass, 0.25), 1 + (10 + 0.25 * 4) + 2);
}

TEST(OverlappedSeconds, TrafficThatIsLongerThanComputationSetsThePace) {
  const ChunkedPassTimes pass{0, 10, {1, 40, 2}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(pass, 0.25), 1 + 40 + 2);
}

TEST(OverlappedSeconds, WithoutTrafficIsComputationAlone) {
  const ChunkedPassTimes pass{5, 4, {0, 0, 0, 0, 0}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(pass, 0.13), pass.compute_s());
  EXPECT_DOUBLE_EQ(sequential_seconds(pass), pass.compute_s());
}

TEST(OverlappedSeconds, OnlyFirstDispatchAndLastReturnAreExposedWhenChipsAreSlower) {
  // M = 4, 8 seconds each way: two seconds a chunk.
  const ChunkedPassTimes pass{0, 10, {2, 2, 4, 4, 2, 2}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(pass, 0) - pass.compute_s(), 2 + 2);
}

}  // namespace
}  // namespace libra
