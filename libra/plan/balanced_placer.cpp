#include <algorithm>
#include <tuple>
#include <utility>

#include "libra/base/index.h"
#include "libra/plan/partial_placement.h"
#include "libra/plan/placement_search.h"
#include "libra/plan/placers.h"

namespace libra {
namespace {

constexpr std::int64_t kRooms = 4;  // differences in room below this share of the cap are small

// One KV shard after the other, in each the heaviest tiles first: who takes in a tile has the keys
// that its neighbours need, and an overloaded home keeps rows of few shards.
std::vector<std::int32_t> shard_by_shard(const PlacementProblem& problem) {
  const PlanOptions& options = problem.options;
  const HeadSplit heads(options.shape, options.head_shards, options.chunks);
  return heaviest_first(problem.tiling, options.head_shards / heads.kv_shards);
}

// The foreign worker with room for the tile that adds the fewest bytes. Among equals one of the
// home's node, then the one with the most room. With node fetch, where the room is about the same,
// one to which the fewest bytes cross.
std::int32_t best_guest(PartialPlacement& placement, const PlacementProblem& problem,
                        std::int32_t tile) {
  const PlanOptions& options = problem.options;
  const std::vector<std::int64_t>& bytes = placement.incremental(tile);
  const std::vector<std::int64_t>& crossing = placement.crossing(tile);
  const std::int32_t home_node = options.node_of(problem.tiling.home_of(tile));
  const std::int64_t about_same = std::max<std::int64_t>(1, problem.cap / kRooms);
  std::int32_t best = -1;
  std::tuple<std::int64_t, bool, std::int64_t, std::int64_t, std::int64_t> best_key;
  for (std::int32_t worker = 0; worker < placement.workers(); ++worker) {
    const std::int64_t room = placement.room_after(tile, worker);
    if (room < 0) continue;
    const std::int32_t node = options.node_of(worker);
    const bool nodes = !crossing.empty();
    const std::tuple key(bytes[at(worker)], node != home_node, nodes ? -(room / about_same) : 0,
                         nodes ? crossing[at(node)] : 0, -room);
    if (best >= 0 && key >= best_key) continue;
    best = worker;
    best_key = key;
  }
  return best;
}

// An overloaded home gives up what costs fewer bytes elsewhere, beside keys that are there already;
// any other keeps what fits.
std::int32_t balanced_choice(PartialPlacement& placement, const PlacementProblem& problem,
                             std::int32_t tile) {
  const std::int32_t home = problem.tiling.home_of(tile);
  const bool fits_home = placement.fits(tile, home);
  if (fits_home && placement.promised(home) <= problem.cap) return home;
  const std::int32_t guest_of = best_guest(placement, problem, tile);
  if (guest_of < 0) return fits_home ? home : paper_choice(placement, tile);
  const std::vector<std::int64_t>& bytes = placement.incremental(tile);
  return fits_home && bytes[at(home)] <= bytes[at(guest_of)] ? home : guest_of;
}

// Heaviest first, each to the lightest worker, whatever it moves.
std::vector<std::int32_t> place_by_load(const PlacementProblem& problem) {
  std::vector<std::int32_t> destination(at(problem.tiling.tiles()));
  std::vector<std::int64_t> load = problem.first_load();
  for (const std::int32_t tile : heaviest_first(problem.tiling, problem.tiling.head_shards)) {
    const auto lightest = std::min_element(load.begin(), load.end());
    destination[at(tile)] = static_cast<std::int32_t>(lightest - load.begin());
    *lightest += problem.tiling.block_of(tile).cost;
  }
  return destination;
}

bool keeps_cap(const PlacementState& state, std::int64_t cap) {
  return state.load(state.heaviest()) <= cap;
}

// Changes of two tiles do not lead everywhere: where they end above the cap, they begin again from
// a placement that looks at nothing but load.
PlacementState repaired(PlacementState state, const PlacementProblem& problem,
                        const TileTraffic& traffic) {
  repair(state, traffic, problem.cap);
  if (keeps_cap(state, problem.cap)) return state;
  PlacementState other(problem.tiling, problem.first_load(), place_by_load(problem));
  repair(other, traffic, problem.cap);
  if (keeps_cap(other, problem.cap)) return other;
  return state;
}

}  // namespace

std::vector<std::int32_t> place_balanced(const PlacementProblem& problem) {
  PartialPlacement placement(problem);
  for (const std::int32_t tile : shard_by_shard(problem)) {
    placement.put(tile, balanced_choice(placement, problem, tile));
  }
  PlacementState state(problem.tiling, problem.first_load(), placement.take());
  const std::int64_t steps = search_steps(problem.options.search_us);
  if (keeps_cap(state, problem.cap) && steps == 0) return state.take();
  const TileTraffic traffic(problem.options, problem.layout, problem.tiling);
  PlacementState kept = repaired(std::move(state), problem, traffic);
  return search(kept, traffic, problem.cap, steps);
}

}  // namespace libra
