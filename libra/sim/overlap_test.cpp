#include "libra/sim/overlap.h"

#include <gtest/gtest.h>

namespace libra {
namespace {

TEST(OverlappedSeconds, HidesTheShorterSide) {
  // Local 5 over dispatch 3 and the beginning of dispatch 6; then chunks of 4, and the last
  // return, 7.
  const ChunkedPassTimes pass{5, 4, {3, 6, 2, 1, 7}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(pass, 0), 5 + 3 * 4 + 7);
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

TEST(OverlappedTimelines, ShowBothSides) {
  // Both dispatches run under the local work; the results of a chunk leave when it is computed.
  const ChunkedPassTimes pass{12, 4, {3, 6, 2, 7}, 1};
  const PassTimeline worker = overlapped_timelines({{pass}, {}}, 0).front();
  ASSERT_EQ(worker.compute.size(), 4U);
  ASSERT_EQ(worker.exchange.size(), 4U);
  EXPECT_DOUBLE_EQ(worker.exchange[0].end_s, 3);
  EXPECT_DOUBLE_EQ(worker.exchange[1].begin_s, 3);
  EXPECT_DOUBLE_EQ(worker.exchange[1].end_s, 9);
  EXPECT_DOUBLE_EQ(worker.compute[1].begin_s, 12);
  EXPECT_DOUBLE_EQ(worker.compute[2].end_s, 20);
  EXPECT_DOUBLE_EQ(worker.exchange[2].begin_s, 16);
  EXPECT_DOUBLE_EQ(worker.exchange[2].end_s, 18);
  EXPECT_DOUBLE_EQ(worker.exchange[3].begin_s, 20);
  EXPECT_DOUBLE_EQ(worker.compute[3].begin_s, 27);
  EXPECT_DOUBLE_EQ(worker.end_s(), 28);
}

// A home that computes nothing, and two guests: one has local work of 100, the other none.
PoolPassTimes two_guests(std::vector<double> exchange_s, bool posts_ahead) {
  const ChunkedPassTimes home{0, 0, exchange_s}, busy{100, 10, exchange_s}, idle{0, 10, exchange_s};
  return {{home, busy, idle}, {{0, 1}, {0, 2}}, posts_ahead};
}

TEST(OverlappedTimelines, TwoChunksWaitForNobody) {
  const auto workers = overlapped_timelines(two_guests({1, 1, 1, 1}, true), 0);
  EXPECT_DOUBLE_EQ(workers[1].end_s(), 100 + 20 + 1);
  EXPECT_DOUBLE_EQ(workers[2].end_s(), 1 + 20 + 1);
}

// The busy guest has room for the third chunk at 110, for the fourth at 120.
TEST(OverlappedTimelines, FromTheThirdOnAllGuestsWaitForTheSlowest) {
  const auto workers = overlapped_timelines(two_guests({1, 1, 1, 1, 1, 1}, true), 0);
  EXPECT_DOUBLE_EQ(workers[0].exchange[2].begin_s, 110);
  EXPECT_DOUBLE_EQ(workers[2].compute[2].end_s, 21);
  EXPECT_DOUBLE_EQ(workers[2].compute[3].begin_s, 111);
  EXPECT_DOUBLE_EQ(workers[2].compute[4].begin_s, 121);
  EXPECT_DOUBLE_EQ(workers[2].end_s(), 121 + 10 + 1);
  EXPECT_DOUBLE_EQ(workers[1].end_s(), 100 + 40 + 1);
}

TEST(OverlappedTimelines, ABusyHomeSendsLateIfItCannotPostAhead) {
  const ChunkedPassTimes home{100, 10, {1, 1, 1, 1, 1}}, guest{0, 10, {1, 1, 1, 1, 1}};
  const PoolPassTimes ahead{{home, guest}, {{0, 1}}, true};
  EXPECT_DOUBLE_EQ(overlapped_timelines(ahead, 0)[1].end_s(), 1 + 30 + 1);
  const PoolPassTimes in_order{{home, guest}, {{0, 1}}, false};
  EXPECT_DOUBLE_EQ(overlapped_timelines(in_order, 0)[1].end_s(), 110 + 1 + 10 + 1);
}

}  // namespace
}  // namespace libra
