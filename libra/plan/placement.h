// Which worker computes which tile: the placers (the paper's section 4.3.2 and what we compare it
// with).
//
// All placers see the same problem and give the same kind of answer, so one exchange planner, one
// runtime and one simulator serve them all:
//
//   Placement placement = place_tiles(options, layout, tiling);
//   placement.destination[t]   // worker of tile t
//
// To add one: a PlacerKind with its name (plan_options.h), a function beside the others, a row in
// placement.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/home_layout.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"

namespace libra {

struct Placement {
  std::vector<std::int32_t> destination;  ///< by tile
  std::vector<std::int64_t> load;         ///< by worker, in the tiles' cost unit
  std::int64_t cap = 0;  ///< C = (1 + tau) * mean load, rounded down, at most the total; soft

  std::int64_t heaviest() const;  ///< load of the heaviest worker
  /// Heaviest load over mean load; 1 if there is no work.
  double max_over_mean() const;
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Deterministic: integers only, ties to the lower tile and worker. O(tiles x workers).
/// `other_work`: by worker, what it has to do besides tiles, in their cost unit, at least 0; empty:
/// nothing. It is balanced together with the tiles, and a part of the loads and the cap that are
/// given.
Placement place_tiles(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling,
                      const std::vector<std::int64_t>& other_work = {});

/// The placement that sends tile t to destination[t]: loads and cap are computed, nothing is
/// decided. Throws PlanError unless there is one destination within the workers for each tile.
Placement with_destinations(const PlanOptions& options, const HomeLayout& layout,
                            const Tiling& tiling, std::vector<std::int32_t> destination);

}  // namespace libra
