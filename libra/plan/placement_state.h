// A complete placement under change: loads, and which tiles are where.
//
//   PlacementState state(tiling, workers, destination);
//   state.move(tile, to);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "libra/plan/tiling.h"

namespace libra {

class PlacementState {
 public:
  /// `load`: by worker, without any tile.
  PlacementState(const Tiling& tiling, std::vector<std::int64_t> load,
                 std::vector<std::int32_t> destination);

  std::int32_t workers() const { return static_cast<std::int32_t>(load_.size()); }
  std::int32_t tiles() const { return static_cast<std::int32_t>(destination_.size()); }
  std::int64_t cost(std::int32_t tile) const { return tiling_.block_of(tile).cost; }
  std::int32_t home(std::int32_t tile) const { return tiling_.home_of(tile); }
  std::int32_t where(std::int32_t tile) const {
    return destination_[static_cast<std::size_t>(tile)];
  }
  std::int64_t load(std::int32_t worker) const { return load_[static_cast<std::size_t>(worker)]; }
  std::int32_t heaviest() const;

  /// In no particular order, but the same one after the same moves.
  const std::vector<std::int32_t>& tiles_at(std::int32_t worker) const {
    return tiles_at_[static_cast<std::size_t>(worker)];
  }
  const std::vector<std::int32_t>& destination() const { return destination_; }

  /// O(1).
  void move(std::int32_t tile, std::int32_t to);

  std::vector<std::int32_t> take() { return std::move(destination_); }

 private:
  void add(std::int32_t tile, std::int32_t worker);

  const Tiling& tiling_;
  std::vector<std::int32_t> destination_;
  std::vector<std::int64_t> load_;
  std::vector<std::vector<std::int32_t>> tiles_at_;
  std::vector<std::int32_t> position_;  // by tile, in tiles_at_
};

}  // namespace libra
