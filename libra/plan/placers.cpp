#include "libra/plan/placers.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "libra/base/index.h"
#include "libra/plan/communication_ledger.h"

namespace libra {
namespace {

// Tiles by decreasing cost, ties by index. All shards of a block cost the same, so blocks are
// sorted.
std::vector<std::int32_t> heaviest_first(const Tiling& tiling) {
  std::vector<std::int32_t> blocks(tiling.blocks.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  std::stable_sort(blocks.begin(), blocks.end(), [&](std::int32_t a, std::int32_t b) {
    return tiling.blocks[at(a)].cost > tiling.blocks[at(b)].cost;
  });
  std::vector<std::int32_t> tiles;
  tiles.reserve(at(tiling.tiles()));
  for (const std::int32_t block : blocks) {
    for (std::int32_t shard = 0; shard < tiling.head_shards; ++shard) {
      tiles.push_back(block * tiling.head_shards + shard);
    }
  }
  return tiles;
}

// A placement under way: who has what, and what the next tile would cost where.
class PartialPlacement {
 public:
  explicit PartialPlacement(const PlacementProblem& problem)
      : tiling_(problem.tiling),
        cap_(problem.cap),
        ledger_(problem.options, problem.layout, problem.tiling),
        load_(at(problem.layout.workers()), 0),
        unplaced_(at(problem.layout.workers()), 0),
        destination_(at(problem.tiling.tiles()), 0) {
    for (std::int32_t tile = 0; tile < tiling_.tiles(); ++tile) {
      unplaced_[at(tiling_.home_of(tile))] += cost(tile);
    }
  }

  bool fits(std::int32_t tile, std::int32_t worker) const {
    return load_[at(worker)] + cost(tile) <= cap_;
  }

  /// fits, and leaves room for the worker's own tiles that are not placed yet.
  bool fits_as_guest(std::int32_t tile, std::int32_t worker) const {
    return load_[at(worker)] + unplaced_[at(worker)] + cost(tile) <= cap_;
  }

  /// The admissible worker with the least (incremental bytes, load, id); -1 if none is admissible.
  template <typename Admissible>
  std::int32_t cheapest(std::int32_t tile, const Admissible& admissible) {
    const std::vector<std::int64_t>& bytes = ledger_.incremental(tile);
    std::int32_t best = -1;
    for (std::int32_t worker = 0; worker < static_cast<std::int32_t>(load_.size()); ++worker) {
      if (!admissible(worker)) continue;
      if (best < 0 || std::tie(bytes[at(worker)], load_[at(worker)]) <
                          std::tie(bytes[at(best)], load_[at(best)])) {
        best = worker;
      }
    }
    return best;
  }

  std::int32_t least_loaded() const {
    return static_cast<std::int32_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
  }

  void put(std::int32_t tile, std::int32_t worker) {
    load_[at(worker)] += cost(tile);
    unplaced_[at(tiling_.home_of(tile))] -= cost(tile);
    destination_[at(tile)] = worker;
    ledger_.commit(tile, worker);
  }

  std::vector<std::int32_t> take() { return std::move(destination_); }

 private:
  std::int64_t cost(std::int32_t tile) const { return tiling_.block_of(tile).cost; }

  const Tiling& tiling_;
  std::int64_t cap_;
  CommunicationLedger ledger_;
  std::vector<std::int64_t> load_;
  std::vector<std::int64_t>
      unplaced_;  // by home: cost of its own tiles that have no destination yet
  std::vector<std::int32_t> destination_;
};

// Algorithm 2's choice for one tile.
std::int32_t paper_choice(PartialPlacement& placement, std::int32_t tile) {
  const std::int32_t worker =
      placement.cheapest(tile, [&](std::int32_t w) { return placement.fits(tile, w); });
  return worker >= 0 ? worker : placement.least_loaded();
}

std::int32_t reserve_choice(PartialPlacement& placement, std::int32_t tile, std::int32_t home) {
  if (placement.fits(tile, home)) return home;
  const std::int32_t guest_of =
      placement.cheapest(tile, [&](std::int32_t w) { return placement.fits_as_guest(tile, w); });
  return guest_of >= 0 ? guest_of : paper_choice(placement, tile);
}

}  // namespace

std::vector<std::int32_t> place_none(const PlacementProblem& problem) {
  std::vector<std::int32_t> destination(at(problem.tiling.tiles()));
  for (std::int32_t tile = 0; tile < problem.tiling.tiles(); ++tile) {
    destination[at(tile)] = problem.tiling.home_of(tile);
  }
  return destination;
}

std::vector<std::int32_t> place_ulysses(const PlacementProblem& problem) {
  std::vector<std::int32_t> destination(at(problem.tiling.tiles()));
  for (std::int32_t tile = 0; tile < problem.tiling.tiles(); ++tile) {
    const std::int32_t replica =
        problem.layout.parts[at(problem.tiling.block_of(tile).part)].replica;
    destination[at(tile)] = replica * problem.options.cp + problem.tiling.shard_of(tile);
  }
  return destination;
}

std::vector<std::int32_t> place_paper(const PlacementProblem& problem) {
  PartialPlacement placement(problem);
  for (const std::int32_t tile : heaviest_first(problem.tiling)) {
    placement.put(tile, paper_choice(placement, tile));
  }
  return placement.take();
}

std::vector<std::int32_t> place_reserve(const PlacementProblem& problem) {
  PartialPlacement placement(problem);
  for (const std::int32_t tile : heaviest_first(problem.tiling)) {
    placement.put(tile, reserve_choice(placement, tile, problem.tiling.home_of(tile)));
  }
  return placement.take();
}

}  // namespace libra
