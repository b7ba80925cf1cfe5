#include "libra/plan/traffic_bound.h"

#include <gtest/gtest.h>

#include "libra/base/index.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"

namespace libra {
namespace {

// Whatever a placer did, or chance: no placement is below the bound for its own balance.
TEST(TrafficBound, IsBelowEveryPlacement) {
  int bounded = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.return_lse = false;
    options.backward = BackwardMode::kKeep;
    PoolPlan plan = make_plan(options, sequences);
    Rng rng(seed, 6);
    for (int i = 0; i < 5; ++i) {
      const std::int64_t bound = forward_bytes_bound(plan);
      ASSERT_LE(bound, forward_traffic(plan).total());
      EXPECT_GE(bytes_over_bound(plan), 1);
      bounded += bound > 0 ? 1 : 0;
      for (std::int32_t& worker : plan.placement.destination) {
        if (rng.below(4) == 0) worker = static_cast<std::int32_t>(rng.below(at(plan.workers())));
      }
      plan.placement = with_destinations(plan.options, plan.layout, plan.tiling,
                                         std::move(plan.placement.destination));
      plan.exchange = plan_exchange(plan.options, plan.layout, plan.tiling, plan.placement);
    }
  }
  EXPECT_GT(bounded, 300);
}

// One sample of four blocks, one head shard, four workers: the last two blocks are as much as two
// workers may have, so their keys are needed twice.
TEST(TrafficBound, OfOneSampleIsCountedByHand) {
  PlanOptions options;
  options.shape = {1, 1, 4, 4};
  options.storage = DType::kFp64;
  options.cp = 4;
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = 4;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{16, {16}}});
  // Tiles cost 10, 26, 42 and 58; the heaviest load is 58. Keys [12, 16): one tile, 58 work. Keys
  // [8, 12): 100 work and two tiles above 29: 2 workers. Keys [4, 8): 126 work: 3. Keys [0, 4):
  // 136 work: 3. So 1 + 2 + 2 times 4 rows of keys at least, of 64 bytes.
  EXPECT_EQ(forward_bytes_bound(plan), (1 + 2 + 2) * 4 * 64);
  // Every worker but the first fetches all keys before its own.
  EXPECT_EQ(forward_traffic(plan).total(), (4 + 8 + 12) * 64);
  EXPECT_DOUBLE_EQ(bytes_over_bound(plan), 24.0 / 20);
}

TEST(TrafficBound, OfAHomeWithTooMuchIsItsCheapestRowsToSend) {
  PlanOptions options;
  options.shape = {1, 1, 4, 4};
  options.storage = DType::kFp64;
  options.cp = 1;
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = 4;
  options.placer = PlacerKind::kNone;
  PoolPlan plan = make_plan(options, {{8, {4, 4}}, {8, {}}});
  EXPECT_EQ(forward_bytes_bound(plan), 0);
  plan.placement = with_destinations(plan.options, plan.layout, plan.tiling, {0, 1});
  plan.exchange = plan_exchange(plan.options, plan.layout, plan.tiling, plan.placement);
  // Half of the work must go: one block's Q, O, K and V.
  EXPECT_EQ(forward_bytes_bound(plan), 4 * 4 * 32);
  EXPECT_DOUBLE_EQ(bytes_over_bound(plan), 1);
}

TEST(TrafficBound, WithoutWorkIsZero) {
  EXPECT_EQ(forward_bytes_bound(make_plan(PlanOptions{}, {{100, {0, 0}}})), 0);
  EXPECT_DOUBLE_EQ(bytes_over_bound(make_plan(PlanOptions{}, {{100, {0, 0}}})), 1);
}

}  // namespace
}  // namespace libra
