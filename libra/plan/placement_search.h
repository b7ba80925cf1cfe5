// Makes a complete placement better without a second construction: repair brings workers under the
// cap, search saves bytes.
//
//   PlacementState state(...);
//   repair(state, traffic, cap);
//   destination = search(state, traffic, cap, search_steps(10'000));
//
// Both only move and swap tiles, count what they look at instead of reading a clock, and draw from
// a fixed seed: every rank ends with the same placement.
#pragma once

#include <cstdint>

#include "libra/plan/placement_state.h"
#include "libra/plan/tile_traffic.h"

namespace libra {

/// While a worker is above the cap and moving one of its tiles, or swapping it with another, leaves
/// the two workers less above it together: does that, with the least bytes among what helps most.
/// O(tiles of a worker x tiles) a round.
void repair(PlacementState& state, const TileTraffic& traffic, std::int64_t cap);

/// Steps that take about this long on a usual core.
std::int64_t search_steps(std::int64_t microseconds);

/// Threshold accepting: random moves, most of them to where the same keys are, and swaps that break
/// no cap are kept while they cost no more than a threshold, which falls from half a block's
/// queries to nothing. Gives the destinations of the best placement met, so never more bytes. No
/// worker above the cap gets heavier.
std::vector<std::int32_t> search(PlacementState& state, const TileTraffic& traffic,
                                 std::int64_t cap, std::int64_t steps);

}  // namespace libra
