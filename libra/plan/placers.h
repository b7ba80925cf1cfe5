// The placers behind place_tiles (placement.h). Each gives the destination worker of every tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/plan/home_layout.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"

namespace libra {

struct PlacementProblem {
  const PlanOptions& options;
  const HomeLayout& layout;
  const Tiling& tiling;
  std::int64_t cap = 0;  ///< C, see Placement; with the other work
  const std::vector<std::int64_t>& other_work;

  /// By worker, before any tile is placed.
  std::vector<std::int64_t> first_load() const {
    std::vector<std::int64_t> load = other_work;
    load.resize(static_cast<std::size_t>(layout.workers()), 0);
    return load;
  }
};

/// Every tile at its home: what context parallelism without balancing does.
std::vector<std::int32_t> place_none(const PlacementProblem& problem);

/// Head shard r of a sequence at its CP rank r: perfect inside a CP group, blind across groups
/// (DeepSpeed Ulysses).
std::vector<std::int32_t> place_ulysses(const PlacementProblem& problem);

/// The paper's Algorithm 2. Heaviest tile first (ties: tile index); among workers that stay within
/// the cap the one with the least incremental communication, then least load, then lowest id; if
/// there is none, the least loaded. Known weakness: heavy tiles fill light homes up to the cap and
/// evict those homes' own cheap tiles, which cascades.
std::vector<std::int32_t> place_paper(const PlacementProblem& problem);

/// Heaviest tile first: home whenever it fits; else a foreign worker whose room for strangers, cap
/// - load - its own tiles not placed yet, takes it, chosen as in place_paper; if there is none, the
/// rule of place_paper.
std::vector<std::int32_t> place_reserve(const PlacementProblem& problem);

/// As `reserve`, but one KV shard after the other, each heaviest tile first: who takes in a tile
/// takes its neighbours too, whose keys it has then, and an overloaded home keeps rows of few
/// shards. Such a home also gives up a tile that fits where that costs fewer bytes, and among equal
/// guests one of its node is taken, then the one with the most room; with node fetch, where rooms
/// are alike, one to which the fewest bytes cross. Then repaired until no worker is above the cap,
/// where moves and swaps can do that, and searched for PlanOptions::search_us.
std::vector<std::int32_t> place_balanced(const PlacementProblem& problem);

}  // namespace libra
