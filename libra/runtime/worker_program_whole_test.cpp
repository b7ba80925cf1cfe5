// Worker programs: which samples are whole, and what becomes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/worker_program.h"

namespace libra {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One worker of a sequence, or two that share its heads: samples of 6, 2, 9 and 4 tokens and
// padding. Every tile is at home, but those that `moved` names, which go to the next worker.
PoolPlan whole_plan(const std::vector<std::int32_t>& moved = {}, std::int32_t tp = 1,
                    bool local_first = true) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.cp = options.tp = tp;
  options.storage = DType::kFp64;
  options.block_tokens = 8;  // a block is 6 and 2, 8 of 9, or 1, 4 and padding
  options.head_shards = 2;
  options.chunks = 1;
  options.local_first = local_first;
  const PoolPlan plan = make_plan(options, {{24, {6, 2, 9, 4}}, {24, {1}}});
  std::vector<std::int32_t> destination;
  destination.reserve(at(plan.tiling.tiles()));
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    destination.push_back(plan.tiling.home_of(tile));
  }
  for (const std::int32_t tile : moved) ++destination[at(tile)];
  return testing::with_tiles_at(plan, std::move(destination));
}

constexpr WholeLimits kShortRuns{16, 5};

Entry square(std::int64_t row, std::int64_t tokens) {
  return {row, tokens, row, tokens, 0, 0, Mask::kTopLeftCausal};
}

TEST(WholeInProgram, WholeSamplesAreACallOfTheirOwn) {
  const WorkerProgram program = make_worker_program(whole_plan(), 0, kShortRuns);
  EXPECT_THAT(program.whole, ElementsAre(square(8, 9), square(0, 6), square(17, 4), square(6, 2)));
  EXPECT_THAT(program.whole_rows, ElementsAre(TokenRange{0, 21}));
  EXPECT_THAT(program.summed_rows, ElementsAre(TokenRange{21, 24}));
  EXPECT_THAT(program.local.backward, IsEmpty());
  EXPECT_THAT(program.local.forward, ::testing::SizeIs(8)) << "of two shards each, as ever";
}

TEST(WholeInProgram, ASampleOfWhichOneShardMovedIsNotWhole) {
  const WorkerProgram program = make_worker_program(whole_plan({3}), 0, kShortRuns);
  EXPECT_THAT(program.whole, ElementsAre(square(0, 6), square(6, 2)));
  EXPECT_THAT(program.whole_rows, ElementsAre(TokenRange{0, 8})) << "4 rows are too few";
  EXPECT_THAT(program.summed_rows, ElementsAre(TokenRange{8, 24}));
  const Entry first_shard = square(8, 9), last_query{16, 1, 16, 1, 2, 1, Mask::kTopLeftCausal};
  EXPECT_THAT(program.local.backward, ::testing::IsSupersetOf({first_shard, last_query}));
  EXPECT_THAT(program.local.backward, ::testing::SizeIs(5));
}

TEST(WholeInProgram, LimitsAndOptionsLeaveNothingWhole) {
  EXPECT_THAT(make_worker_program(whole_plan(), 0, {16, 22}).whole, IsEmpty());
  EXPECT_THAT(make_worker_program(whole_plan(), 0).whole, IsEmpty());
  EXPECT_THAT(make_worker_program(whole_plan({}, 1, false), 0, kShortRuns).whole, IsEmpty());
  EXPECT_THAT(make_worker_program(whole_plan(), 0, {8, 5}).whole_rows,
              ElementsAre(TokenRange{0, 8}));
}

// The other worker of the part has other heads of the same sample.
TEST(WholeInProgram, WorkForTheOtherHeadsOfAPartLeavesItsSamplesWhole) {
  const PoolPlan plan = whole_plan({2, 4}, 2);
  const WorkerProgram guest = make_worker_program(plan, 1, kShortRuns);
  EXPECT_THAT(guest.whole_rows, ElementsAre(TokenRange{0, 21}));
  EXPECT_EQ(guest.q_heads, 2);
  ASSERT_THAT(guest.chunked, ::testing::SizeIs(1));
  EXPECT_THAT(guest.chunked[0].backward, ::testing::Not(IsEmpty()));
  EXPECT_THAT(make_worker_program(plan, 0, kShortRuns).whole_rows, ElementsAre(TokenRange{0, 8}));
}

TEST(WholeInProgram, SamplesThatTheHomesCutAreNotWhole) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.cp = 2;
  options.head_shards = options.chunks = 1;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{24, {10, 4, 8}}});
  EXPECT_THAT(make_worker_program(plan, 0, kShortRuns).whole_rows, ElementsAre(TokenRange{0, 10}));
  EXPECT_THAT(make_worker_program(plan, 1, kShortRuns).whole_rows, ElementsAre(TokenRange{2, 10}));
}

TEST(WholeInProgram, TheUsualLimitsAre2048RowsTogetherAnd16384Alone) {
  PlanOptions options;
  options.head_shards = options.chunks = 1;
  options.placer = PlacerKind::kNone;
  const auto whole_rows = [&](const std::vector<std::int64_t>& samples) {
    return make_worker_program(make_plan(options, {{40'000, samples}}), 0).whole_rows;
  };
  EXPECT_THAT(whole_rows({1000, 1047}), IsEmpty());
  EXPECT_THAT(whole_rows({1000, 1048}), ElementsAre(TokenRange{0, 2048}));
  EXPECT_THAT(whole_rows({16'384, 1}), ElementsAre(TokenRange{0, 16'385}));
  EXPECT_THAT(whole_rows({16'385, 2000}), IsEmpty());
}

WholeLimits random_limits(std::uint64_t seed) {
  Rng rng(seed, 2);
  return {testing::between(rng, 5, 60), testing::between(rng, 1, 10)};
}

bool meets(const std::vector<TokenRange>& ranges, std::int64_t row, std::int64_t rows) {
  return std::any_of(ranges.begin(), ranges.end(), [&](TokenRange range) {
    return !intersect(range, {row, row + rows}).empty();
  });
}

TEST(WholeInProgram, NothingThatTravelsMeetsAWholeSample) {
  int programs_with_whole = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = testing::mostly_at_home(seed, 60);
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const WorkerProgram program = make_worker_program(plan, worker, random_limits(seed));
      if (!program.whole.empty()) ++programs_with_whole;
      for (const auto* moves : {&program.q_out, &program.kv_out, &program.kv_copies}) {
        for (const RowMove& move : *moves) {
          EXPECT_FALSE(meets(program.whole_rows, move.from_row, move.rows));
        }
      }
      for (const TokenRange rows : program.padding) {
        EXPECT_FALSE(meets(program.whole_rows, rows.begin, rows.size()));
      }
    }
  }
  EXPECT_GT(programs_with_whole, 100);
}

TEST(WholeInProgram, RowsAreOfWholeSamplesOrSummedAndNeverBoth) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = testing::mostly_at_home(seed, 60);
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const WorkerProgram program = make_worker_program(plan, worker, random_limits(seed));
      std::vector<int> whole(at(program.rows), 0), summed = whole, named = whole;
      const auto count = [](std::int64_t row, std::int64_t rows, std::vector<int>& counts) {
        for (std::int64_t i = row; i < row + rows; ++i) ++counts[at(i)];
      };
      for (const TokenRange rows : program.whole_rows) count(rows.begin, rows.size(), whole);
      for (const TokenRange rows : program.summed_rows) count(rows.begin, rows.size(), summed);
      for (const Entry& entry : program.whole) count(entry.q_row, entry.queries, named);
      EXPECT_EQ(whole, named);
      for (std::size_t row = 0; row < whole.size(); ++row) EXPECT_EQ(whole[row] + summed[row], 1);
    }
  }
}

}  // namespace
}  // namespace libra
