// A placement that grows tile by tile: who has what, and what the next tile would cost where. What
// the greedy placers share.
//
//   PartialPlacement placement(problem);
//   for (const std::int32_t tile : heaviest_first(tiling, tiling.head_shards)) {
//     placement.put(tile, some_choice(placement, tile));
//   }
//   return placement.take();
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "libra/plan/communication_ledger.h"
#include "libra/plan/placers.h"

namespace libra {

/// Tiles by decreasing cost, ties by index; those of the first `shards_together` head shards before
/// those of the next. Requires a divisor of the head shards.
std::vector<std::int32_t> heaviest_first(const Tiling& tiling, std::int32_t shards_together);

class PartialPlacement {
 public:
  explicit PartialPlacement(const PlacementProblem& problem);

  std::int32_t workers() const { return static_cast<std::int32_t>(load_.size()); }
  std::int64_t load(std::int32_t worker) const { return load_[static_cast<std::size_t>(worker)]; }

  /// With the worker's own tiles that are not placed yet.
  std::int64_t promised(std::int32_t worker) const {
    return load(worker) + unplaced_[static_cast<std::size_t>(worker)];
  }

  bool fits(std::int32_t tile, std::int32_t worker) const {
    return load(worker) + cost(tile) <= cap_;
  }

  /// fits, and leaves room for the worker's own tiles that are not placed yet.
  bool fits_as_guest(std::int32_t tile, std::int32_t worker) const {
    return room_after(tile, worker) >= 0;
  }

  /// Incremental bytes by worker, as CommunicationLedger has them.
  const std::vector<std::int64_t>& incremental(std::int32_t tile) {
    return ledger_.incremental(tile);
  }

  /// Of these, what crosses to which node; empty without node fetch.
  const std::vector<std::int64_t>& crossing(std::int32_t tile) { return ledger_.crossing(tile); }

  /// Of the worker's cap, what would still be free for guests with the tile there; below 0 if it
  /// does not fit as one.
  std::int64_t room_after(std::int32_t tile, std::int32_t worker) const {
    return cap_ - promised(worker) - cost(tile);
  }

  /// The admissible worker with the least (incremental bytes, load, id); -1 if none is admissible.
  template <typename Admissible>
  std::int32_t cheapest(std::int32_t tile, const Admissible& admissible) {
    const std::vector<std::int64_t>& bytes = incremental(tile);
    std::int32_t best = -1;
    for (std::int32_t worker = 0; worker < workers(); ++worker) {
      if (!admissible(worker)) continue;
      const auto key = [&](std::int32_t w) {
        return std::pair(bytes[static_cast<std::size_t>(w)], load(w));
      };
      if (best < 0 || key(worker) < key(best)) best = worker;
    }
    return best;
  }

  std::int32_t least_loaded() const;

  void put(std::int32_t tile, std::int32_t worker);

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

/// Algorithm 2's choice for one tile.
std::int32_t paper_choice(PartialPlacement& placement, std::int32_t tile);

}  // namespace libra
