#include "libra/plan/partial_placement.h"

#include <algorithm>
#include <numeric>

#include "libra/base/index.h"

namespace libra {

// All shards of a block cost the same, so blocks are sorted.
std::vector<std::int32_t> heaviest_first(const Tiling& tiling, std::int32_t shards_together) {
  std::vector<std::int32_t> blocks(tiling.blocks.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  std::stable_sort(blocks.begin(), blocks.end(), [&](std::int32_t a, std::int32_t b) {
    return tiling.blocks[at(a)].cost > tiling.blocks[at(b)].cost;
  });
  std::vector<std::int32_t> tiles;
  tiles.reserve(at(tiling.tiles()));
  for (std::int32_t first = 0; first < tiling.head_shards; first += shards_together) {
    for (const std::int32_t block : blocks) {
      for (std::int32_t shard = first; shard < first + shards_together; ++shard) {
        tiles.push_back(block * tiling.head_shards + shard);
      }
    }
  }
  return tiles;
}

PartialPlacement::PartialPlacement(const PlacementProblem& problem)
    : tiling_(problem.tiling),
      cap_(problem.cap),
      ledger_(problem.options, problem.layout, problem.tiling),
      load_(problem.first_load()),
      unplaced_(at(problem.layout.workers()), 0),
      destination_(at(problem.tiling.tiles()), 0) {
  for (std::int32_t tile = 0; tile < tiling_.tiles(); ++tile) {
    unplaced_[at(tiling_.home_of(tile))] += cost(tile);
  }
}

std::int32_t PartialPlacement::least_loaded() const {
  return static_cast<std::int32_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
}

void PartialPlacement::put(std::int32_t tile, std::int32_t worker) {
  load_[at(worker)] += cost(tile);
  unplaced_[at(tiling_.home_of(tile))] -= cost(tile);
  destination_[at(tile)] = worker;
  ledger_.commit(tile, worker);
}

std::int32_t paper_choice(PartialPlacement& placement, std::int32_t tile) {
  const std::int32_t worker =
      placement.cheapest(tile, [&](std::int32_t w) { return placement.fits(tile, w); });
  return worker >= 0 ? worker : placement.least_loaded();
}

}  // namespace libra
