#include "libra/sim/pipeline_schedule.h"

#include <gtest/gtest.h>

#include "libra/base/index.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

using Times = std::vector<std::vector<StageTimes>>;

Times even(std::size_t stages, std::size_t microbatches, StageTimes times) {
  return Times(stages, std::vector<StageTimes>(microbatches, times));
}

TEST(Schedule1f1b, OneStageDoesOneForwardAndOneBackwardInTurn) {
  const auto schedule = schedule_1f1b({{{1, 2}, {3, 4}}}, 100);
  ASSERT_EQ(schedule.size(), 1u);
  ASSERT_EQ(schedule[0].size(), 4u);
  EXPECT_FALSE(schedule[0][0].backward);
  EXPECT_TRUE(schedule[0][1].backward);
  EXPECT_EQ(schedule[0][2].microbatch, 1);
  EXPECT_DOUBLE_EQ(makespan(schedule), 10);  // no transfer to itself
  EXPECT_DOUBLE_EQ(bubble_share(schedule), 0);
}

// With equal microbatches a stage idles for as long as PP - 1 of them take.
TEST(Schedule1f1b, EqualMicrobatchesHaveTheKnownBubble) {
  for (const std::size_t stages : {1U, 2U, 4U}) {
    for (const std::size_t microbatches : {1U, 4U, 9U}) {
      const auto schedule = schedule_1f1b(even(stages, microbatches, {1, 2}), 0);
      const auto slots = static_cast<double>(microbatches + stages - 1);
      EXPECT_DOUBLE_EQ(makespan(schedule), 3 * slots) << stages << " x " << microbatches;
      EXPECT_DOUBLE_EQ(bubble_share(schedule), static_cast<double>(stages - 1) / slots);
    }
  }
}

// stage 0   F0 F1 .. .. B0 F2 B1 .. B2          F 1, B 2; F1 takes 5 on stage 1
// stage 1   .. F0 B0 F1(5)    B1 F2 B2
TEST(Schedule1f1b, ASlowMicrobatchDelaysWhatDependsOnIt) {
  Times times = even(2, 3, {1, 2});
  times[1][1].forward = 5;
  const auto schedule = schedule_1f1b(times, 0);
  // Stage 1: F0 [1,2) B0 [2,4) F1 [4,9) B1 [9,11) F2 [11,12) B2 [12,14); stage 0 ends with B2.
  EXPECT_DOUBLE_EQ(schedule[1][2].begin, 4);
  EXPECT_DOUBLE_EQ(schedule[1][3].end, 11);
  EXPECT_DOUBLE_EQ(schedule[1][5].end, 14);
  EXPECT_DOUBLE_EQ(makespan(schedule), 16);
}

TEST(Schedule1f1b, TransfersLieBetweenStages) {
  const auto schedule = schedule_1f1b(even(2, 1, {1, 2}), 10);
  EXPECT_DOUBLE_EQ(makespan(schedule), 1 + 10 + 1 + 2 + 10 + 2);
}

TEST(Schedule1f1b, KeepsNoMoreMicrobatchesInFlightThanStagesFollow) {
  const auto schedule = schedule_1f1b(even(4, 8, {1, 1}), 0);
  for (std::size_t stage = 0; stage < schedule.size(); ++stage) {
    int in_flight = 0;
    for (const PipelineOperation& operation : schedule[stage]) {
      in_flight += operation.backward ? -1 : 1;
      EXPECT_LE(in_flight, static_cast<int>(4 - stage));
    }
    EXPECT_EQ(in_flight, 0);
  }
}

TEST(Schedule1f1b, NothingBeginsBeforeItsInputOrWhileItsStageIsBusy) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    const std::size_t stages = 1 + rng.below(4);
    Times times = even(stages, 1 + rng.below(6), {});
    for (auto& stage : times) {
      for (StageTimes& t : stage) t = {rng.uniform(), rng.uniform()};
    }
    const auto schedule = schedule_1f1b(times, 0.1);
    std::vector<std::vector<double>> forward_end(stages, std::vector<double>(times[0].size()));
    for (std::size_t stage = 0; stage < stages; ++stage) {
      double free = 0;
      for (const PipelineOperation& operation : schedule[stage]) {
        EXPECT_GE(operation.begin, free);
        free = operation.end;
        const std::size_t microbatch = at(operation.microbatch);
        if (operation.backward) continue;
        forward_end[stage][microbatch] = operation.end;
        if (stage > 0) {
          EXPECT_GE(operation.begin, forward_end[stage - 1][microbatch] + 0.1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace libra
