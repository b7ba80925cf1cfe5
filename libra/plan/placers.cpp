#include "libra/plan/placers.h"

#include "libra/base/index.h"
#include "libra/plan/partial_placement.h"

namespace libra {
namespace {

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
  for (const std::int32_t tile : heaviest_first(problem.tiling, problem.tiling.head_shards)) {
    placement.put(tile, paper_choice(placement, tile));
  }
  return placement.take();
}

std::vector<std::int32_t> place_reserve(const PlacementProblem& problem) {
  PartialPlacement placement(problem);
  for (const std::int32_t tile : heaviest_first(problem.tiling, problem.tiling.head_shards)) {
    placement.put(tile, reserve_choice(placement, tile, problem.tiling.home_of(tile)));
  }
  return placement.take();
}

}  // namespace libra
