#include "libra/plan/pool_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "libra/base/error.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

std::vector<std::int64_t> block_costs(const PoolPlan& plan) {
  std::vector<std::int64_t> costs;
  for (const Block& block : plan.tiling.blocks) costs.push_back(block.cost);
  return costs;
}

TEST(PoolPlan, IsTheSameWhereverItIsMade) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    const PoolPlan plan = make_plan(options, sequences);
    EXPECT_EQ(make_plan(options, sequences), plan);
    EXPECT_EQ(rebuild_plan(options, sequences, block_costs(plan), plan.placement.destination),
              plan);
    EXPECT_EQ(plan_fingerprint(make_plan(options, sequences)), plan_fingerprint(plan));
  }
}

TEST(PoolPlan, RebuildingFromWhatDoesNotBelongTogetherIsAnError) {
  const PoolPlan plan = make_plan(PlanOptions{}, {{10'000, {10'000}}});
  const auto costs = block_costs(plan);
  const auto& destination = plan.placement.destination;
  const auto rebuild = [&](const std::vector<std::int64_t>& with_costs) {
    return rebuild_plan(plan.options, plan.sequences, with_costs, destination);
  };
  EXPECT_EQ(rebuild(costs), plan);
  EXPECT_THROW(rebuild({}), PlanError);
  EXPECT_THROW(rebuild({1, 2, 3, 4}), PlanError);
  EXPECT_THROW(rebuild({1, 2, -3}), PlanError);
  EXPECT_THROW(rebuild({1, 2, INT64_MAX}), PlanError);
  EXPECT_THROW(rebuild_plan(plan.options, plan.sequences, costs, {0, 0}), PlanError);
  EXPECT_THROW(rebuild_plan(plan.options, {}, costs, destination), ConfigError);
}

PlanOptions small_options() {
  PlanOptions options;
  options.shape = {8, 4, 4, 4};
  options.cp = 4;
  options.tp = 1;
  options.head_shards = 4;
  options.chunks = 1;
  options.block_tokens = 16;
  return options;
}

TEST(Fingerprint, ChangesWithEveryOptionAndSequence) {
  const std::vector<std::function<void(PlanOptions&)>> changes = {
      [](PlanOptions&) {},
      [](PlanOptions& o) { o.shape.q_heads = 16; },
      [](PlanOptions& o) { o.shape.kv_heads = 8; },
      [](PlanOptions& o) { o.shape.head_dim = 8; },
      [](PlanOptions& o) { o.shape.value_dim = 8; },
      [](PlanOptions& o) { o.storage = DType::kFp16; },
      [](PlanOptions& o) { o.cp = 2; },
      [](PlanOptions& o) { o.tp = 2; },
      [](PlanOptions& o) { o.home = HomeKind::kZigzagRow; },
      [](PlanOptions& o) { o.home = HomeKind::kZigzagDocument; },
      [](PlanOptions& o) { o.block_tokens = 1000; },
      [](PlanOptions& o) { o.block_tokens = 1001; },
      [](PlanOptions& o) { o.head_shards = 2; },
      [](PlanOptions& o) { o.chunks = 2; },
      [](PlanOptions& o) { o.placer = PlacerKind::kNone; },
      [](PlanOptions& o) { o.placer = PlacerKind::kPaper; },
      [](PlanOptions& o) { o.placer = PlacerKind::kUlysses; },
      [](PlanOptions& o) { o.fetch = Fetch::kWhole; },
      [](PlanOptions& o) { o.tau_ppm = 30'001; },
      [](PlanOptions& o) { o.backward = BackwardMode::kRefetch; },
      [](PlanOptions& o) { o.return_lse = true; },
      [](PlanOptions& o) { o.local_first = false; },
      [](PlanOptions& o) {
        o.home = HomeKind::kExplicit;
        o.explicit_runs = {{{{0, 25}}, {{25, 50}}, {{50, 75}}, {{75, 100}}}};
      },
      [](PlanOptions& o) {
        o.home = HomeKind::kExplicit;
        o.explicit_runs = {{{{0, 25}}, {{25, 50}}, {{50, 75}, {75, 100}}, {}}};
      }};
  std::set<std::uint64_t> seen;
  for (const auto& change : changes) {
    PlanOptions options = small_options();
    change(options);
    seen.insert(plan_fingerprint(make_plan(options, {{100, {40, 50}}})));
  }
  EXPECT_EQ(seen.size(), changes.size());
  for (const PackedSequence& sequence : std::vector<PackedSequence>{
           {101, {40, 50}}, {100, {40, 51}}, {100, {40, 50, 0}}, {100, {50, 40}}}) {
    EXPECT_TRUE(seen.insert(plan_fingerprint(make_plan(small_options(), {sequence}))).second);
  }
  EXPECT_TRUE(
      seen.insert(plan_fingerprint(make_plan(small_options(), {{100, {40, 50}}, {0, {}}}))).second);
}

TEST(Fingerprint, ChangesWithEveryDecision) {
  const PoolPlan plan = make_plan(small_options(), {{100, {40, 50}}});
  std::set<std::uint64_t> seen = {plan_fingerprint(plan)};
  for (std::size_t tile = 0; tile < plan.placement.destination.size(); ++tile) {
    auto destination = plan.placement.destination;
    destination[tile] = (destination[tile] + 1) % plan.workers();
    const PoolPlan other =
        rebuild_plan(plan.options, plan.sequences, block_costs(plan), destination);
    EXPECT_TRUE(seen.insert(plan_fingerprint(other)).second) << "tile " << tile;
  }
  for (std::size_t block = 0; block < plan.tiling.blocks.size(); ++block) {
    auto costs = block_costs(plan);
    ++costs[block];
    const PoolPlan other =
        rebuild_plan(plan.options, plan.sequences, costs, plan.placement.destination);
    EXPECT_TRUE(seen.insert(plan_fingerprint(other)).second) << "block " << block;
  }
}

TEST(Hazards, AMillionTokensTimes64HeadsTimes256WorkersFit) {
  PlanOptions options;
  options.shape = {64, 4, 128, 128};
  options.cp = 32;
  options.head_shards = 8;
  options.chunks = 4;
  options.block_tokens = 16'384;
  const std::int64_t tokens = 1 << 20;
  for (const PlacerKind placer : {PlacerKind::kReserve, PlacerKind::kPaper}) {
    options.placer = placer;
    const PoolPlan plan = make_plan(options, std::vector<PackedSequence>(8, {tokens, {tokens}}));
    EXPECT_EQ(plan.workers(), 256);
    std::int64_t total = 0;
    for (const std::int64_t load : plan.placement.load) total += load;
    EXPECT_EQ(total, 8 * 64 * (tokens * (tokens + 1) / 2));
    EXPECT_LE(plan.placement.max_over_mean(), 1.04);
    EXPECT_TRUE(validate(plan).empty());
    EXPECT_GT(forward_traffic(plan).total(), std::int64_t{1} << 32);
    EXPECT_GT(max_memory_bytes(plan), std::int64_t{1} << 31);
  }
}

TEST(Hazards, SeventyThousandSamplesOfOneToken) {
  PlanOptions options;
  options.cp = 2;
  PackedSequence sequence{80'000, std::vector<std::int64_t>(70'000, 1)};
  for (const HomeKind home : {HomeKind::kContiguous, HomeKind::kZigzagDocument}) {
    options.home = home;
    const PoolPlan plan = make_plan(options, {sequence, {80'000, {}}});
    EXPECT_EQ(plan.layout.samples.size(), 70'000U);
    EXPECT_EQ(plan.tiling.pieces.size(), 70'000U);
    EXPECT_TRUE(validate(plan).empty());
  }
}

}  // namespace
}  // namespace libra
