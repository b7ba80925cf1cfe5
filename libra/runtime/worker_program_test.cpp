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

TEST(WorkerProgram, ClassesHoldWhatTheySayInRandomPlans) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = testing::random_plan(seed, 60);
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const WorkerProgram program = make_worker_program(plan, worker, {30, 5});
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
