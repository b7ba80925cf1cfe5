#include "libra/runtime/worker_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"

namespace libra {

bool operator==(const OwnBlock& a, const OwnBlock& b) {
  return a.row == b.row && a.rows == b.rows && a.q_head == b.q_head && a.heads == b.heads;
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two sequences of 8 tokens, each with a worker of its own:
//
//   worker 0   | sample 0, block 0 | sample 0, block 1 |
//   worker 1   | sample 1    | s 2 | s 2 |   padding   |      3, 2 and 3 tokens; blocks of 4
//
// The last tile of sample 0 goes to worker 1.
PoolPlan small_plan(bool local_first = true) {
  PlanOptions options;
  options.shape = {2, 1, 4, 4};
  options.storage = DType::kFp64;
  options.block_tokens = 4;
  options.head_shards = 1;
  options.chunks = 1;
  options.local_first = local_first;
  return testing::with_tiles_at(make_plan(options, {{8, {8}}, {8, {3, 2}}}), {0, 1, 1, 1});
}

TEST(WorkerProgram, WorkThatStaysIsLocal) {
  const WorkerProgram program = make_worker_program(small_plan(), 0);
  EXPECT_FALSE(program.local.q_in_arena);
  EXPECT_FALSE(program.local.kv_in_arena);
  EXPECT_THAT(program.local.forward, ElementsAre(Entry{0, 4, 0, 4, 0, 0, Mask::kTopLeftCausal}));
  EXPECT_THAT(program.local.backward, ElementsAre(Entry{0, 4, 0, 4, 0, 0, Mask::kTopLeftCausal}));
  EXPECT_THAT(program.chunked, IsEmpty());
  EXPECT_THAT(program.computed_here, ElementsAre(OwnBlock{0, 4, 0, 2}));
  EXPECT_THAT(program.padding, IsEmpty());
}

TEST(WorkerProgram, PiecesOfNeighbouringBlocksAreOneEntryAndLongestComesFirst) {
  const WorkerProgram program = make_worker_program(small_plan(), 1);
  EXPECT_THAT(program.local.forward, ElementsAre(Entry{0, 3, 0, 3, 0, 0, Mask::kTopLeftCausal},
                                                 Entry{3, 2, 3, 2, 0, 0, Mask::kTopLeftCausal}));
  EXPECT_THAT(program.computed_here, ElementsAre(OwnBlock{0, 5, 0, 2}));
  EXPECT_THAT(program.padding, ElementsAre(TokenRange{5, 8}));
}

TEST(WorkerProgram, ForeignWorkIsChunkedAndItsBackwardIsARectangleAndASquare) {
  const WorkerProgram program = make_worker_program(small_plan(), 1);
  ASSERT_EQ(program.chunked.size(), 1U);
  const EntryGroup& group = program.chunked[0];
  EXPECT_TRUE(group.q_in_arena);
  EXPECT_TRUE(group.kv_in_arena);
  EXPECT_THAT(group.forward, ElementsAre(Entry{0, 4, 0, 8, 0, 0, Mask::kBottomRightCausal}));
  EXPECT_THAT(group.backward, ElementsAre(Entry{0, 4, 0, 4, 0, 0, Mask::kFull},
                                          Entry{0, 4, 4, 4, 0, 0, Mask::kTopLeftCausal}));
}

TEST(WorkerProgram, MovesAreThoseOfTheWorker) {
  const PoolPlan plan = small_plan();
  const WorkerProgram home = make_worker_program(plan, 0);
  const WorkerProgram destination = make_worker_program(plan, 1);
  EXPECT_THAT(home.q_out, ElementsAre(RowMove{0, 1, 0, 0, 4, 0, 4}));
  EXPECT_EQ(home.q_out, destination.q_in);
  EXPECT_THAT(home.kv_out, ElementsAre(RowMove{0, 1, 0, 0, 0, 0, 8}));
  EXPECT_EQ(home.kv_out, destination.kv_in);
  EXPECT_THAT(home.q_in, IsEmpty());
  EXPECT_THAT(destination.kv_out, IsEmpty());
  EXPECT_THAT(destination.kv_copies, IsEmpty());
}

TEST(WorkerProgram, WithoutLocalFirstEverythingIsChunked) {
  const WorkerProgram program = make_worker_program(small_plan(false), 1);
  EXPECT_THAT(program.local.forward, IsEmpty());
  ASSERT_EQ(program.chunked.size(), 2U);
  EXPECT_FALSE(program.chunked[0].q_in_arena);
  EXPECT_TRUE(program.chunked[1].q_in_arena);
}

TEST(WorkerProgram, AWorkerWithoutWorkHasNoGroups) {
  const PoolPlan plan = testing::with_tiles_at(small_plan(), {1, 1, 1, 1});
  const WorkerProgram program = make_worker_program(plan, 0);
  EXPECT_THAT(program.local.forward, IsEmpty());
  EXPECT_THAT(program.chunked, IsEmpty());
  EXPECT_THAT(program.computed_here, IsEmpty());
  EXPECT_EQ(program.rows, 8);
}

TEST(WorkerProgram, AHeadRangeHomeCountsHeadsFromItsFirst) {
  PlanOptions options;
  options.shape = {8, 4, 4, 4};
  options.cp = options.tp = 2;
  options.head_shards = 4;
  options.chunks = 1;
  options.placer = PlacerKind::kNone;
  const WorkerProgram program = make_worker_program(make_plan(options, {{8, {8}}}), 1);
  EXPECT_EQ(program.q_heads, 4);
  EXPECT_EQ(program.kv_heads, 2);
  EXPECT_EQ(program.first_q_head, 4);
  EXPECT_EQ(program.first_kv_head, 2);
  EXPECT_THAT(program.local.forward, ElementsAre(Entry{0, 8, 0, 8, 0, 0, Mask::kTopLeftCausal},
                                                 Entry{0, 8, 0, 8, 2, 1, Mask::kTopLeftCausal}));
  EXPECT_THAT(program.computed_here, ElementsAre(OwnBlock{0, 8, 0, 2}, OwnBlock{0, 8, 2, 2}));
}

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

TEST(WorkerProgram, WholeSamplesAreACallOfTheirOwn) {
  const WorkerProgram program = make_worker_program(whole_plan(), 0, kShortRuns);
  EXPECT_THAT(program.whole, ElementsAre(square(8, 9), square(0, 6), square(17, 4), square(6, 2)));
  EXPECT_THAT(program.whole_rows, ElementsAre(TokenRange{0, 21}));
  EXPECT_THAT(program.summed_rows, ElementsAre(TokenRange{21, 24}));
  EXPECT_THAT(program.local.backward, IsEmpty());
  EXPECT_THAT(program.local.forward, ::testing::SizeIs(8)) << "of two shards each, as ever";
}

TEST(WorkerProgram, ASampleOfWhichOneShardMovedIsNotWhole) {
  const WorkerProgram program = make_worker_program(whole_plan({3}), 0, kShortRuns);
  EXPECT_THAT(program.whole, ElementsAre(square(0, 6), square(6, 2)));
  EXPECT_THAT(program.whole_rows, ElementsAre(TokenRange{0, 8})) << "4 rows are too few";
  EXPECT_THAT(program.summed_rows, ElementsAre(TokenRange{8, 24}));
  const Entry first_shard = square(8, 9), last_query{16, 1, 16, 1, 2, 1, Mask::kTopLeftCausal};
  EXPECT_THAT(program.local.backward, ::testing::IsSupersetOf({first_shard, last_query}));
  EXPECT_THAT(program.local.backward, ::testing::SizeIs(5));
}

TEST(WorkerProgram, LimitsAndOptionsLeaveNothingWhole) {
  EXPECT_THAT(make_worker_program(whole_plan(), 0, {16, 22}).whole, IsEmpty());
  EXPECT_THAT(make_worker_program(whole_plan(), 0).whole, IsEmpty());
  EXPECT_THAT(make_worker_program(whole_plan({}, 1, false), 0, kShortRuns).whole, IsEmpty());
  EXPECT_THAT(make_worker_program(whole_plan(), 0, {8, 5}).whole_rows,
              ElementsAre(TokenRange{0, 8}));
}

// The other worker of the part has other heads of the same sample.
TEST(WorkerProgram, WorkForTheOtherHeadsOfAPartLeavesItsSamplesWhole) {
  const PoolPlan plan = whole_plan({2, 4}, 2);
  const WorkerProgram guest = make_worker_program(plan, 1, kShortRuns);
  EXPECT_THAT(guest.whole_rows, ElementsAre(TokenRange{0, 21}));
  EXPECT_EQ(guest.q_heads, 2);
  ASSERT_THAT(guest.chunked, ::testing::SizeIs(1));
  EXPECT_THAT(guest.chunked[0].backward, ::testing::Not(IsEmpty()));
  EXPECT_THAT(make_worker_program(plan, 0, kShortRuns).whole_rows, ElementsAre(TokenRange{0, 8}));
}

TEST(WorkerProgram, SamplesThatTheHomesCutAreNotWhole) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.cp = 2;
  options.head_shards = options.chunks = 1;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{24, {10, 4, 8}}});
  EXPECT_THAT(make_worker_program(plan, 0, kShortRuns).whole_rows, ElementsAre(TokenRange{0, 10}));
  EXPECT_THAT(make_worker_program(plan, 1, kShortRuns).whole_rows, ElementsAre(TokenRange{2, 10}));
}

TEST(WorkerProgram, TheUsualLimitsAre2048RowsTogetherAnd16384Alone) {
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

std::int64_t pairs(const Entry& entry) {
  std::int64_t sum = 0;
  for (std::int64_t query = 0; query < entry.queries; ++query) {
    sum += entry.mask == Mask::kTopLeftCausal ? std::min(query + 1, entry.keys)
           : entry.mask == Mask::kFull        ? entry.keys
                                              : query + 1 + entry.keys - entry.queries;
  }
  return sum;
}

void expect_longest_first(const std::vector<Entry>& entries) {
  EXPECT_TRUE(std::is_sorted(entries.begin(), entries.end(),
                             [](const Entry& a, const Entry& b) { return pairs(a) > pairs(b); }));
}

WholeLimits random_limits(std::uint64_t seed) {
  Rng rng(seed, 2);
  return {testing::between(rng, 5, 60), testing::between(rng, 1, 10)};
}

TEST(WorkerProgram, ClassesHoldWhatTheySayInRandomPlans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = testing::random_plan(seed, 60);
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const WorkerProgram program = make_worker_program(plan, worker, random_limits(seed));
      EXPECT_TRUE(plan.options.local_first || program.local.forward.empty());
      expect_longest_first(program.local.forward);
      expect_longest_first(program.local.backward);
      expect_longest_first(program.whole);
      for (const EntryGroup& group : program.chunked) {
        EXPECT_THAT(group.forward, ::testing::Not(IsEmpty()));
        EXPECT_TRUE(group.q_in_arena || group.kv_in_arena || !plan.options.local_first);
        expect_longest_first(group.forward);
        expect_longest_first(group.backward);
      }
    }
  }
}

bool meets(const std::vector<TokenRange>& ranges, std::int64_t row, std::int64_t rows) {
  return std::any_of(ranges.begin(), ranges.end(), [&](TokenRange range) {
    return !intersect(range, {row, row + rows}).empty();
  });
}

TEST(WorkerProgram, NothingThatTravelsMeetsAWholeSample) {
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

TEST(WorkerProgram, RowsAreOfWholeSamplesOrSummedAndNeverBoth) {
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

// 1 for every own (row, head), head-minor, that the lists name; more where they overlap.
std::vector<int> named(const WorkerProgram& program, const std::vector<OwnBlock>& blocks) {
  std::vector<int> count(at(program.rows * program.q_heads), 0);
  for (const OwnBlock& block : blocks) {
    for (std::int64_t row = block.row; row < block.row + block.rows; ++row) {
      for (std::int32_t head = block.q_head; head < block.q_head + block.heads; ++head) {
        ++count[at(row * program.q_heads + head)];
      }
    }
  }
  return count;
}

TEST(WorkerProgram, EveryOwnRowAndHeadIsComputedHereOrElsewhereOrPadding) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = testing::random_plan(seed, 60);
    const std::int32_t shard_heads = plan.heads().shard_heads;
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const WorkerProgram program = make_worker_program(plan, worker);
      std::vector<OwnBlock> blocks = program.computed_here;
      for (const RowMove& move : program.q_out) {
        blocks.push_back({move.from_row, move.rows, move.shard * shard_heads - program.first_q_head,
                          shard_heads});
      }
      for (const TokenRange rows : program.padding) {
        blocks.push_back({rows.begin, rows.size(), 0, program.q_heads});
      }
      EXPECT_THAT(named(program, blocks), ::testing::Each(1)) << "worker " << worker;
    }
  }
}

}  // namespace
}  // namespace libra
