#include "libra/plan/placement_state.h"

#include <algorithm>

#include "libra/base/index.h"

namespace libra {

PlacementState::PlacementState(const Tiling& tiling, std::vector<std::int64_t> load,
                               std::vector<std::int32_t> destination)
    : tiling_(tiling),
      destination_(std::move(destination)),
      load_(std::move(load)),
      tiles_at_(load_.size()),
      position_(destination_.size()) {
  for (std::int32_t tile = 0; tile < tiles(); ++tile) add(tile, where(tile));
}

std::int32_t PlacementState::heaviest() const {
  return static_cast<std::int32_t>(std::max_element(load_.begin(), load_.end()) - load_.begin());
}

void PlacementState::move(std::int32_t tile, std::int32_t to) {
  const std::int32_t from = where(tile);
  std::vector<std::int32_t>& left = tiles_at_[at(from)];
  const std::int32_t last = left.back();
  left[at(position_[at(tile)])] = last;
  position_[at(last)] = position_[at(tile)];
  left.pop_back();
  load_[at(from)] -= cost(tile);
  add(tile, to);
}

void PlacementState::add(std::int32_t tile, std::int32_t worker) {
  std::vector<std::int32_t>& there = tiles_at_[at(worker)];
  position_[at(tile)] = static_cast<std::int32_t>(there.size());
  there.push_back(tile);
  load_[at(worker)] += cost(tile);
  destination_[at(tile)] = worker;
}

}  // namespace libra
