// For tests: random plans that the CPU can run, with destinations that no placer would choose.
#pragma once

#include <cstdint>

#include "libra/plan/random_plans.h"

namespace libra::testing {

/// A legal plan in fp64; equal for equal arguments. In every other plan the destination of each
/// tile is drawn, so that moves, merges and fetches occur that placers avoid.
PoolPlan random_plan(std::uint64_t seed, std::int64_t max_tokens);

/// The plan with every tile's destination drawn.
PoolPlan scattered(const PoolPlan& plan, Rng& rng);

/// The plan with most tiles at home: with local work first, many samples are computed as a whole.
PoolPlan mostly_at_home(const PoolPlan& plan, Rng& rng);
/// Such a plan, legal and in fp64.
PoolPlan mostly_at_home(std::uint64_t seed, std::int64_t max_tokens);

/// The plan with every third tile at its home, the others one or two workers further: everybody
/// sends to and computes for others, in circles.
PoolPlan dealt_round(const PoolPlan& plan);

/// The plan with these destinations, by tile.
PoolPlan with_tiles_at(const PoolPlan& plan, std::vector<std::int32_t> destination);

}  // namespace libra::testing
