#include "libra/runtime/random_pools.h"

#include <utility>

#include "libra/base/index.h"

namespace libra::testing {

PoolPlan random_plan(std::uint64_t seed, std::int64_t max_tokens) {
  PoolProblem problem = random_problem(seed, max_tokens);
  problem.options.storage = DType::kFp64;
  PoolPlan plan = make_plan(problem.options, problem.sequences);
  Rng rng(seed, 1);
  return rng.below(2) == 0 ? plan : scattered(plan, rng);
}

PoolPlan scattered(const PoolPlan& plan, Rng& rng) {
  std::vector<std::int32_t> destination(at(plan.tiling.tiles()));
  for (std::int32_t& worker : destination) {
    worker = static_cast<std::int32_t>(between(rng, 0, plan.workers() - 1));
  }
  return with_tiles_at(plan, std::move(destination));
}

PoolPlan mostly_at_home(const PoolPlan& plan, Rng& rng) {
  std::vector<std::int32_t> destination;
  destination.reserve(at(plan.tiling.tiles()));
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    const auto other = static_cast<std::int32_t>(between(rng, 0, plan.workers() - 1));
    destination.push_back(rng.below(12) == 0 ? other : plan.tiling.home_of(tile));
  }
  return with_tiles_at(plan, std::move(destination));
}

PoolPlan mostly_at_home(std::uint64_t seed, std::int64_t max_tokens) {
  PoolProblem problem = random_problem(seed, max_tokens);
  problem.options.storage = DType::kFp64;
  problem.options.local_first = true;
  Rng rng(seed, 1);
  return mostly_at_home(make_plan(problem.options, problem.sequences), rng);
}

PoolPlan dealt_round(const PoolPlan& plan) {
  std::vector<std::int32_t> destination;
  destination.reserve(at(plan.tiling.tiles()));
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    destination.push_back((plan.tiling.home_of(tile) + tile % 3) % plan.workers());
  }
  return with_tiles_at(plan, std::move(destination));
}

PoolPlan with_tiles_at(const PoolPlan& plan, std::vector<std::int32_t> destination) {
  std::vector<std::int64_t> costs;
  for (const Block& block : plan.tiling.blocks) costs.push_back(block.cost);
  return rebuild_plan(plan.options, plan.sequences, costs, std::move(destination));
}

}  // namespace libra::testing
