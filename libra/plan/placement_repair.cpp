#include <algorithm>
#include <tuple>

#include "libra/plan/placement_search.h"

namespace libra {
namespace {

// Move `tile` to `to`, and `swapped` (unless it is -1) back.
struct Change {
  std::int64_t excess = 0;  // above the cap, of both workers together, afterwards
  std::int32_t tile = -1;
  std::int32_t to = -1;
  std::int32_t swapped = -1;
};

class Repair {
 public:
  Repair(PlacementState& state, const TileTraffic& traffic, std::int64_t cap)
      : state_(state), traffic_(traffic), cap_(cap) {}

  void run() {
    for (std::int32_t w = state_.heaviest(); state_.load(w) > cap_; w = state_.heaviest()) {
      if (looked_at_ > kMostLooks) return;
      const Change best = best_change(w);
      if (best.tile < 0) return;
      apply(best);
    }
  }

 private:
  // Some 50 ms of a usual core; pools that keep a tau of 1% need a thousandth.
  static constexpr std::int64_t kMostLooks = 10'000'000;

  std::int64_t above(std::int64_t load) const { return std::max<std::int64_t>(0, load - cap_); }

  Change best_change(std::int32_t worker) {
    best_ = {};
    for (const std::int32_t tile : state_.tiles_at(worker)) {
      if (state_.cost(tile) == 0) continue;
      for (std::int32_t to = 0; to < state_.workers(); ++to) {
        if (to == worker) continue;
        consider({0, tile, to, -1}, 0);
        for (const std::int32_t back : state_.tiles_at(to)) {
          consider({0, tile, to, back}, state_.cost(back));
        }
      }
    }
    return best_;
  }

  // Better is less excess, then fewer bytes; bytes are looked at only between equals.
  void consider(Change change, std::int64_t cost_back) {
    ++looked_at_;
    const std::int32_t from = state_.where(change.tile);
    const std::int64_t moved = state_.cost(change.tile) - cost_back;
    if (moved <= 0) return;
    const std::int64_t before = above(state_.load(from)) + above(state_.load(change.to));
    change.excess = above(state_.load(from) - moved) + above(state_.load(change.to) + moved);
    if (change.excess >= before) return;
    if (best_.tile >= 0 && change.excess > best_.excess) return;
    const std::int64_t bytes = bytes_of(change);
    if (best_.tile >= 0 && change.excess == best_.excess && bytes >= best_bytes_) return;
    best_ = change;
    best_bytes_ = bytes;
  }

  std::int64_t bytes_of(const Change& change) const {
    std::int64_t bytes = traffic_.change(state_.destination(), change.tile, change.to);
    if (change.swapped < 0) return bytes;
    return bytes + traffic_.change(state_.destination(), change.swapped, state_.where(change.tile));
  }

  void apply(const Change& change) {
    const std::int32_t from = state_.where(change.tile);
    state_.move(change.tile, change.to);
    if (change.swapped >= 0) state_.move(change.swapped, from);
  }

  PlacementState& state_;
  const TileTraffic& traffic_;
  std::int64_t cap_;
  Change best_;
  std::int64_t best_bytes_ = 0;
  std::int64_t looked_at_ = 0;
};

}  // namespace

void repair(PlacementState& state, const TileTraffic& traffic, std::int64_t cap) {
  Repair(state, traffic, cap).run();
}

}  // namespace libra
