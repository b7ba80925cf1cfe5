#include "libra/plan/tile_traffic.h"

#include <gtest/gtest.h>

#include <vector>

#include "libra/base/index.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"

namespace libra {
namespace {

// What the exchange planner makes of a placement, with bytes between nodes counted as the options
// say: another way to the same number.
std::int64_t weighted_bytes(PoolPlan plan, const std::vector<std::int32_t>& destination) {
  plan.options.return_lse = false;
  plan.options.backward = BackwardMode::kKeep;
  plan.placement = with_destinations(plan.options, plan.layout, plan.tiling, destination);
  plan.exchange = plan_exchange(plan.options, plan.layout, plan.tiling, plan.placement);
  const TrafficReport traffic = forward_traffic(plan);
  return traffic.total() +
         plan.options.inter_node_weight * traffic.inter_node(plan.options.gpus_per_node);
}

TEST(TileTraffic, OfAChangeIsWhatTheExchangePlannerSendsMore) {
  int changes = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    const PoolPlan plan = make_plan(options, sequences);
    const TileTraffic traffic(plan.options, plan.layout, plan.tiling);
    Rng rng(seed, 5);
    std::vector<std::int32_t> destination = plan.placement.destination;
    std::int64_t bytes = weighted_bytes(plan, destination);
    for (int i = 0; i < 20 && !destination.empty(); ++i) {
      const auto tile = static_cast<std::int32_t>(rng.below(destination.size()));
      const auto to = static_cast<std::int32_t>(rng.below(at(plan.workers())));
      const std::int64_t change = traffic.change(destination, tile, to);
      EXPECT_GE(change, -traffic.most_saved(tile));
      const std::int64_t most = change + testing::between(rng, -1000, 1000);
      const std::int64_t looked_at = traffic.change(destination, tile, to, most);
      EXPECT_TRUE(looked_at == change || (looked_at > most && change > most));
      destination[at(tile)] = to;
      const std::int64_t after = weighted_bytes(plan, destination);
      ASSERT_EQ(change, after - bytes) << "tile " << tile << " to " << to;
      changes += change != 0 ? 1 : 0;
      bytes = after;
    }
  }
  EXPECT_GT(changes, 1000);
}

}  // namespace
}  // namespace libra
