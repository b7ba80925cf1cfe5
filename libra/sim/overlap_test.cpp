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

TEST(OverlappedIntervals, FollowEachOtherAndShowBothSides) {
  // Local 5 over dispatch 3; chunks of 4 beside 6 and 2; return 7.
  // Last 1.
  const ChunkedPassTimes pass{5, 4, {3, 6, 2, 7}, 1};
  const auto intervals = overlapped_intervals(pass, 0);
  ASSERT_EQ(intervals.size(), 5U);
  EXPECT_DOUBLE_EQ(intervals[0].compute_end_s, 5);
  EXPECT_DOUBLE_EQ(intervals[0].exchange_end_s, 3);
  EXPECT_DOUBLE_EQ(intervals[1].begin_s, 5);
  EXPECT_DOUBLE_EQ(intervals[1].compute_end_s, 9);
  EXPECT_DOUBLE_EQ(intervals[1].end_s(), 11);
  EXPECT_DOUBLE_EQ(intervals[2].end_s(), 15);
  EXPECT_DOUBLE_EQ(intervals[3].compute_end_s, intervals[3].begin_s);
  EXPECT_DOUBLE_EQ(intervals[3].end_s(), 22);
  EXPECT_DOUBLE_EQ(intervals[4].compute_end_s, 23);
  EXPECT_DOUBLE_EQ(pass.compute_s(), 5 + 2 * 4 + 1);
  EXPECT_DOUBLE_EQ(sequential_seconds(pass), pass.compute_s() + 3 + 6 + 2 + 7);
}

}  // namespace
}  // namespace libra
