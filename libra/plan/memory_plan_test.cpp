#include "libra/plan/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

// Regions that are not empty lie one after the other, aligned and without overlap, within `bytes`.
void expect_apart(std::vector<Region> regions, std::int64_t bytes) {
  regions.erase(std::remove_if(regions.begin(), regions.end(),
                               [](const Region& region) { return region.slot_bytes == 0; }),
                regions.end());
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.offset < b.offset; });
  std::int64_t free_from = 0;
  for (const Region& region : regions) {
    EXPECT_GE(region.offset, free_from);
    EXPECT_EQ(region.offset % 256, 0);
    EXPECT_EQ(region.slot_bytes % 256, 0);
    EXPECT_GE(region.slot_bytes, region.rows * region.row_bytes);
    free_from = std::max(free_from, region.offset + region.slots * region.slot_bytes);
  }
  EXPECT_LE(free_from, bytes);
}

void expect_arena(const PoolPlan& plan, const ArenaLayout& a) {
  expect_apart({a.q, a.k, a.v, a.o, a.lse}, a.bytes);
  std::vector<Region> backward = {a.d_o,     a.dq,      a.dk,       a.dv,
                                  a.dk_home, a.dv_home, a.dk_relay, a.dv_relay};
  if (plan.options.backward == BackwardMode::kRefetch)
    backward.insert(backward.end(), {a.q, a.k, a.v, a.o, a.lse});
  expect_apart(backward, a.bytes);
}

TEST(MemoryPlan, RegionsInUseTogetherNeverOverlap) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    const PoolPlan plan = make_plan(options, sequences);
    const std::vector<WorkerMemory> memory = plan_memory(plan);
    ASSERT_EQ(memory.size(), at(plan.workers()));
    std::int64_t largest_arena = 0;
    std::int64_t largest = 0;
    for (const auto& [arena, saved, scratch] : memory) {
      expect_arena(plan, arena);
      expect_apart({saved.q, saved.k, saved.v, saved.o, saved.lse}, saved.bytes);
      expect_apart({scratch.dq_arena, scratch.dq, scratch.dk, scratch.dv}, scratch.bytes);
      largest_arena = std::max(largest_arena, arena.bytes);
      largest = std::max(largest, arena.bytes + saved.bytes + scratch.bytes);
    }
    EXPECT_EQ(max_arena_bytes(plan), largest_arena);
    EXPECT_EQ(max_memory_bytes(plan), largest);
  }
}

// As in traffic_test: two workers with 10 tokens each of a sample of 20, 4 heads in 2 shards, M 2.
// Each worker computes one shard: 10 foreign query rows, a fetch of 20 keys, 10 of them foreign.
PoolPlan tiny_plan(BackwardMode backward) {
  PlanOptions options;
  options.shape = {4, 2, 32, 64};
  options.storage = DType::kBf16;
  options.cp = 2;
  options.head_shards = 2;
  options.chunks = 2;
  options.block_tokens = 10;
  options.placer = PlacerKind::kUlysses;
  options.backward = backward;
  return make_plan(options, {{20, {20}}});
}

TEST(MemoryPlan, OfATinyPoolByHand) {
  const WorkerMemory memory = plan_memory(tiny_plan(BackwardMode::kKeep))[0];
  // A chunk has one query head. Rows of Q take 64 bytes, of O 128, of LSE 4; 10 rows each, rounded
  // up to 256. The KV shard has one head, so one KV chunk: K 20 x 64, V 20 x 128.
  const std::int64_t q = 768;
  const std::int64_t o = 1280;
  const std::int64_t lse = 256;
  const std::int64_t k = 1280;
  const std::int64_t v = 2560;
  EXPECT_EQ(memory.arena.k.offset, 2 * q);
  EXPECT_EQ(memory.arena.v.offset, 2 * q + k);
  EXPECT_EQ(memory.arena.o.offset, 2 * q + k + v);
  EXPECT_EQ(memory.arena.o.row(3, 2), 2 * q + k + v + o + 2 * 128);
  const std::int64_t forward = 2 * (q + o + lse) + k + v;
  // dO 2 slots, dQ 2 slots, fp32 dK 20 x 128 and dV 20 x 256, and the 10 lent rows of each.
  const std::int64_t backward = 2 * (o + q) + 2560 + 5120 + 1280 + 2560;
  EXPECT_EQ(memory.arena.bytes, std::max(forward, backward));
  EXPECT_EQ(memory.saved.bytes, 2 * (q + o + lse) + k + v);
  // fp32: dQ of 10 foreign rows of a head; dQ, dK and dV of 10 own rows of all heads.
  EXPECT_EQ(memory.scratch.bytes, 1280 + 10 * (4 * 128 + 2 * 128 + 2 * 256));
  EXPECT_EQ(memory.bytes(), memory.arena.bytes + memory.saved.bytes + memory.scratch.bytes);
}

TEST(MemoryPlan, RefetchSavesNothingAndHoldsForwardAndBackwardTogether) {
  const WorkerMemory keep = plan_memory(tiny_plan(BackwardMode::kKeep))[0];
  const WorkerMemory refetch = plan_memory(tiny_plan(BackwardMode::kRefetch))[0];
  EXPECT_EQ(refetch.saved.bytes, 0);
  EXPECT_EQ(refetch.arena.d_o.offset, keep.saved.bytes);
  EXPECT_GT(refetch.arena.bytes, keep.arena.bytes);
}

TEST(MemoryPlan, WithoutExchangeOnlyTheGradientsOfOwnRowsNeedMemory) {
  PlanOptions options;
  const PoolPlan plan = make_plan(options, {{100, {100}}});
  const WorkerMemory memory = plan_memory(plan)[0];
  EXPECT_EQ(memory.arena.bytes, 0);
  EXPECT_EQ(memory.saved.bytes, 0);
  EXPECT_EQ(memory.scratch.bytes, 100 * 4 * 128 * (32 + 8 + 8));
}

class MemoryCap : public ::testing::Test {
 protected:
  MemoryCap() {
    base_options.shape = {16, 4, 32, 32};
    base_options.cp = 4;
    base_options.head_shards = 1;
    base_options.chunks = 1;
    base_options.block_tokens = 64;
    base_options.tau_ppm = 10'000;
  }

  std::int64_t bytes(std::int32_t chunks, BackwardMode mode) const {
    PlanOptions options = base_options;
    options.chunks = chunks;
    options.backward = mode;
    return max_memory_bytes(make_plan(options, base_sequences));
  }

  PlanOptions base_options;
  std::vector<PackedSequence> base_sequences = {{2048, {2048}}, {2048, {1000, 40}}};
};

TEST_F(MemoryCap, ThatIsWideKeepsTheOptions) {
  const PoolPlan plan =
      make_plan_within(base_options, base_sequences, bytes(1, BackwardMode::kKeep));
  EXPECT_EQ(plan, make_plan(base_options, base_sequences));
}

TEST_F(MemoryCap, ThatIsTightTakesTheFewestChunksThatFit) {
  ASSERT_LT(bytes(2, BackwardMode::kKeep), bytes(1, BackwardMode::kKeep));
  ASSERT_LT(bytes(4, BackwardMode::kKeep), bytes(2, BackwardMode::kKeep));
  const std::int64_t cap = bytes(4, BackwardMode::kKeep);
  const PoolPlan plan = make_plan_within(base_options, base_sequences, cap);
  EXPECT_EQ(plan.options.backward, BackwardMode::kKeep);
  EXPECT_EQ(plan.options.chunks, 4);
  PlanOptions expected = base_options;
  expected.chunks = 4;
  EXPECT_EQ(plan, make_plan(expected, base_sequences));
  EXPECT_LE(max_memory_bytes(plan), cap);
}

TEST_F(MemoryCap, ThatNoChunkCountKeepsIsMetByRefetching) {
  std::int64_t least = bytes(1, BackwardMode::kKeep);
  for (const std::int32_t chunks : {2, 4, 8, 16})
    least = std::min(least, bytes(chunks, BackwardMode::kKeep));
  const PoolPlan plan = make_plan_within(base_options, base_sequences, least - 1);
  EXPECT_EQ(plan.options.backward, BackwardMode::kRefetch);
  EXPECT_LT(max_memory_bytes(plan), least);
}

TEST_F(MemoryCap, ThatNothingKeepsIsAnErrorWithTheFigures) {
  try {
    make_plan_within(base_options, base_sequences, 1000);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the cap is 1.00 kB"));
    EXPECT_THAT(error.what(), HasSubstr("the least that any chunk count"));
  }
}

TEST_F(MemoryCap, OfIllegalOptionsIsAConfigError) {
  base_options.head_shards = 0;
  EXPECT_THROW(make_plan_within(base_options, base_sequences, 1000), ConfigError);
}

}  // namespace
}  // namespace libra
