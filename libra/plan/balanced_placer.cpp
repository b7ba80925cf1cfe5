#include <algorithm>
#include <tuple>

#include "libra/base/index.h"
#include "libra/plan/partial_placement.h"
#include "libra/plan/placement_search.h"
#include "libra/plan/placers.h"

namespace libra {
namespace {

constexpr std::int64_t kRooms = 4;  // differences in room below this share of the cap are small

// The foreign worker with room for the tile that adds the fewest bytes. Among equals one that has
// not taken in much, so that a worker fetches few samples, then the one with the most room. With
// node fetch, where the room is about the same, one to which the fewest bytes cross.
std::int32_t best_guest(PartialPlacement& placement, const PlanOptions& options,
                        std::int32_t tile) {
  const std::vector<std::int64_t>& bytes = placement.incremental(tile);
  const std::vector<std::int64_t>& crossing = placement.crossing(tile);
  const std::int64_t about_same = std::max<std::int64_t>(1, placement.cap() / kRooms);
  std::int32_t best = -1;
  std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t> best_key;
  for (std::int32_t worker = 0; worker < placement.workers(); ++worker) {
    const std::int64_t room = placement.room_after(tile, worker);
    if (room < 0) continue;
    const bool nodes = !crossing.empty();
    const std::tuple key(bytes[at(worker)], placement.imported(worker),
                         nodes ? -(room / about_same) : 0,
                         nodes ? crossing[at(options.node_of(worker))] : 0, -room);
    if (best >= 0 && key >= best_key) continue;
    best = worker;
    best_key = key;
  }
  return best;
}

// An overloaded home gives up what costs fewer bytes elsewhere, beside keys that are there already;
// any other keeps what fits.
std::int32_t balanced_choice(PartialPlacement& placement, const PlanOptions& options,
                             std::int32_t tile, std::int32_t home) {
  const bool fits_home = placement.fits(tile, home);
  if (fits_home && placement.promised(home) <= placement.cap()) return home;
  const std::int32_t guest_of = best_guest(placement, options, tile);
  if (guest_of < 0) return fits_home ? home : paper_choice(placement, tile);
  const std::vector<std::int64_t>& bytes = placement.incremental(tile);
  return fits_home && bytes[at(home)] <= bytes[at(guest_of)] ? home : guest_of;
}

}  // namespace

std::vector<std::int32_t> place_balanced(const PlacementProblem& problem) {
  PartialPlacement placement(problem);
  for (const std::int32_t tile : heaviest_first(problem.tiling)) {
    placement.put(tile,
                  balanced_choice(placement, problem.options, tile, problem.tiling.home_of(tile)));
  }
  PlacementState state(problem.tiling, problem.layout.workers(), placement.take());
  const std::int64_t steps = search_steps(problem.options.search_us);
  if (state.load(state.heaviest()) <= problem.cap && steps == 0) return state.take();
  const TileTraffic traffic(problem.options, problem.layout, problem.tiling);
  repair(state, traffic, problem.cap);
  return search(state, traffic, problem.cap, steps);
}

}  // namespace libra
