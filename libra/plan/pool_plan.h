// The plan of one pool for one microbatch: a plain value that simulator and runtime both consume.
//
//   lengths -> packed sequences -> homes -> tiles -> placement -> exchange
//
//   PoolPlan plan = make_plan(options, sequences);   // a few hundred microseconds for 64 workers
//
// A plan is determined by what was given (options, sequences) and what was decided (a destination
// per tile); all else is derived from those by the functions in this room, the same way on every
// rank. It is immutable in use: one plan serves every layer, forward, recompute and backward.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/exchange.h"
#include "libra/plan/head_split.h"
#include "libra/plan/home_layout.h"
#include "libra/plan/placement.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"

namespace libra {

struct PoolPlan {
  PlanOptions options;
  std::vector<PackedSequence> sequences;  ///< by replica in the pool
  HomeLayout layout;
  Tiling tiling;
  Placement placement;
  ExchangePlan exchange;

  std::int32_t workers() const { return layout.workers(); }
  HeadSplit heads() const { return {options.shape, options.head_shards, options.chunks}; }
  std::int32_t tiles_moved() const;
  friend bool operator==(const PoolPlan&, const PoolPlan&) = default;
};

/// `other_work`: what is balanced together with the tiles, as place_tiles has it; the plan's loads
/// are those of tiles alone. Throws ConfigError for options or sequences that break a rule.
PoolPlan make_plan(const PlanOptions& options, std::vector<PackedSequence> sequences,
                   const PieceCost& cost = flops_cost,
                   const std::vector<std::int64_t>& other_work = {});

/// The plan with these destinations and tile costs (by block, as in Block::cost), for plans that
/// were decided elsewhere. Throws PlanError if they do not belong to the options and sequences.
PoolPlan rebuild_plan(const PlanOptions& options, std::vector<PackedSequence> sequences,
                      const std::vector<std::int64_t>& block_costs,
                      std::vector<std::int32_t> destination);

/// Equal on two ranks exactly if they hold the same plan under the same version of these rules (up
/// to collisions).
std::uint64_t plan_fingerprint(const PoolPlan& plan);

}  // namespace libra
