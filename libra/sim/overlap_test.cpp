#include "libra/sim/overlap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "libra/base/rng.h"

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

// Of dispatches of 3 and 6, what the local work does not cover runs under chunk 0.
TEST(OverlappedTimelines, BothFirstDispatchesSlowTheLocalWorkAndThenTheFirstChunk) {
  const ChunkedPassTimes covered{100, 10, {3, 6, 0, 0}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(covered, 0.5), 100 + 0.5 * 9 + 20);
  const ChunkedPassTimes half{5, 10, {3, 6, 0, 0}};
  EXPECT_DOUBLE_EQ(overlapped_seconds(half, 0.5), 5 + 0.5 * 5 + 10 + 0.5 * 4 + 10);
}

PoolPassTimes pool_pass(std::vector<ChunkedPassTimes> workers, const PhaseFlows& flows) {
  const std::size_t chunks = workers.front().exchange_s.size() - 2;
  return {std::move(workers), std::vector<PhaseFlows>(chunks, flows)};
}

constexpr double kChunk = 10;

// Every phase takes one second.
ChunkedPassTimes worker_pass(double local_s, double chunk_s, std::size_t chunks) {
  return {local_s, chunk_s, std::vector<double>(chunks + 2, 1.0)};
}

TEST(OverlappedTimelines, TwoChunksWaitForNobodysComputation) {
  const PoolPassTimes pass =
      pool_pass({worker_pass(0, 0, 2), worker_pass(100, kChunk, 2), worker_pass(0, kChunk, 2)},
                {{{0, 1}, {0, 2}}, {}});
  const auto workers = overlapped_timelines(pass, 0);
  EXPECT_DOUBLE_EQ(workers[1].end_s(), 100 + 20 + 1);
  EXPECT_DOUBLE_EQ(workers[2].end_s(), 1 + 20 + 1);
}

// Guest 1 has room for the third chunk at 110, for the fourth at 120. Guest 2 comes after it in the
// lane of worker 0; in that of worker 3, which goes round, guest 4 comes before it.
TEST(OverlappedTimelines, FromTheThirdOnGuestsWaitForTheSlowestBeforeThem) {
  const PoolPassTimes pass =
      pool_pass({worker_pass(0, 0, 4), worker_pass(100, kChunk, 4), worker_pass(0, kChunk, 4),
                 worker_pass(0, 0, 4), worker_pass(0, kChunk, 4)},
                {{{0, 1}, {0, 2}, {3, 1}, {3, 4}}, {}});
  const auto workers = overlapped_timelines(pass, 0);
  EXPECT_DOUBLE_EQ(workers[1].end_s(), 100 + 40 + 1);
  EXPECT_DOUBLE_EQ(workers[2].compute[2].end_s, 21);
  EXPECT_DOUBLE_EQ(workers[2].compute[3].begin_s, 111);
  EXPECT_DOUBLE_EQ(workers[2].compute[4].begin_s, 121);
  EXPECT_DOUBLE_EQ(workers[2].end_s(), 121 + 10 + 1);
  EXPECT_DOUBLE_EQ(workers[4].compute[3].begin_s, 21) << "before the slow one";
  EXPECT_DOUBLE_EQ(workers[4].compute[4].begin_s, 112) << "behind it, one phase later";
}

// What it lends leaves late; what it computes itself does not.
TEST(OverlappedTimelines, AHomeDoesNotWaitForItsGuests) {
  const PoolPassTimes pass =
      pool_pass({worker_pass(0, kChunk, 4), worker_pass(100, kChunk, 4)}, {{{0, 1}}, {}});
  EXPECT_DOUBLE_EQ(overlapped_timelines(pass, 0)[0].end_s(), 1 + 40 + 1);
}

TEST(OverlappedTimelines, AHomeAddsUpWhenItsGuestsAreDone) {
  PoolPassTimes pass =
      pool_pass({worker_pass(0, kChunk, 2), worker_pass(100, kChunk, 2)}, {{{0, 1}}, {}});
  pass.workers[0].last_s = 5;
  EXPECT_DOUBLE_EQ(overlapped_timelines(pass, 0)[0].end_s(), 121 + 5);
}

TEST(OverlappedTimelines, BothEndsMustComeToAPhaseIfNobodyPostsAhead) {
  PoolPassTimes pass =
      pool_pass({worker_pass(100, kChunk, 3), worker_pass(0, kChunk, 3)}, {{{0, 1}}, {}});
  EXPECT_DOUBLE_EQ(overlapped_timelines(pass, 0)[1].end_s(), 1 + 30 + 1);
  pass.posts_ahead = false;
  EXPECT_DOUBLE_EQ(overlapped_timelines(pass, 0)[1].end_s(), 110 + 1 + 10 + 1);
}

// The first keys before its local work, which waits for them, the next ones after it.
TEST(OverlappedTimelines, ARelayThatCannotPostAheadPassesOnBetweenItsComputations) {
  PoolPassTimes pass =
      pool_pass({worker_pass(50, kChunk, 2), worker_pass(0, kChunk, 2)}, {{}, {{0, 1}}});
  pass.posts_ahead = false;
  const auto workers = overlapped_timelines(pass, 0);
  EXPECT_DOUBLE_EQ(workers[0].compute[0].begin_s, 1);
  EXPECT_DOUBLE_EQ(workers[1].compute[1].begin_s, 1);
  EXPECT_DOUBLE_EQ(workers[1].compute[2].begin_s, 51 + 1);
  EXPECT_DOUBLE_EQ(workers[1].end_s(), 52 + 10 + 1);
}

PoolPassTimes random_pass(Rng& rng, bool posts_ahead) {
  const auto seconds = [&rng] { return static_cast<double>(rng.below(50)); };
  const auto chunks = static_cast<std::size_t>(1 + rng.below(4));
  PoolPassTimes pass;
  pass.posts_ahead = posts_ahead;
  for (int w = 0; w < 5; ++w) {
    ChunkedPassTimes& worker = pass.workers.emplace_back();
    worker.local_s = seconds();
    worker.chunk_compute_s = seconds();
    for (std::size_t phase = 0; phase < chunks + 2; ++phase) {
      worker.exchange_s.push_back(seconds() / 10);
    }
    worker.last_s = seconds() / 10;
  }
  pass.flows.resize(chunks);
  for (PhaseFlows& flows : pass.flows) {
    for (std::int32_t home = 0; home < 5; ++home) {
      for (std::int32_t guest = 0; guest < 5; ++guest) {
        if (home != guest && rng.below(3) == 0) flows.lent.push_back({home, guest});
      }
    }
  }
  return pass;
}

void expect_in_order(const std::vector<TimeSpan>& spans) {
  for (std::size_t i = 0; i < spans.size(); ++i) {
    EXPECT_LE(spans[i].begin_s, spans[i].end_s);
    EXPECT_GE(spans[i].begin_s, i > 0 ? spans[i - 1].end_s : 0.0);
  }
}

TEST(OverlappedTimelines, SpansFollowEachOtherAndPartnersOnlyDelay) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    const PoolPassTimes pass = random_pass(rng, rng.below(2) == 0);
    PoolPassTimes alone = pass;
    alone.flows.clear();
    const auto workers = overlapped_timelines(pass, 0.13);
    const auto workers_alone = overlapped_timelines(alone, 0.13);
    for (std::size_t w = 0; w < workers.size(); ++w) {
      expect_in_order(workers[w].compute);
      expect_in_order(workers[w].exchange);
      EXPECT_GE(workers[w].end_s(), workers_alone[w].end_s() * (1 - 1e-12));
      EXPECT_LE(overlapped_timelines(alone, 0)[w].end_s(),
                sequential_seconds(pass.workers[w]) * (1 + 1e-12));
    }
  }
}

}  // namespace
}  // namespace libra
