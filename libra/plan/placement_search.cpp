#include "libra/plan/placement_search.h"

#include <algorithm>

#include "libra/base/index.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

constexpr std::int64_t kStepsPerUs = 55;
constexpr std::int64_t kStages = 64;
constexpr std::int64_t kExtraDraws = 20;
constexpr std::int64_t kMostExtraDraws = 10;

class Search {
 public:
  Search(PlacementState& state, const TileTraffic& traffic, std::int64_t cap, std::int64_t steps)
      : state_(state), traffic_(traffic), cap_(cap), steps_(steps), best_(state.destination()) {
    list_draws();
  }

  std::vector<std::int32_t> run() {
    for (stage_ = 0; stage_ <= kStages; ++stage_) {
      threshold_ = threshold();
      const std::int64_t end = steps_ / (kStages + 1) * (stage_ + 1);
      for (; done_ < end; ++done_) propose(draws_[below(draws_.size())]);
    }
    return std::move(best_);
  }

 private:
  // Every tile, heavy ones several times: where they are decides the bytes.
  void list_draws() {
    std::int64_t total = 0;
    for (std::int32_t worker = 0; worker < state_.workers(); ++worker) total += state_.load(worker);
    const std::int64_t unit = std::max<std::int64_t>(1, total / state_.workers() / kExtraDraws);
    draws_.reserve(at(state_.tiles()) * 2);
    for (std::int32_t tile = 0; tile < state_.tiles(); ++tile) {
      const std::int64_t extra = std::min(kMostExtraDraws, state_.cost(tile) / unit);
      draws_.insert(draws_.end(), at(1 + extra), tile);
    }
  }

  // The bias is below 2^-20 for any number of tiles, and there is no division.
  std::size_t below(std::size_t bound) { return (rng_.next() >> 32) * bound >> 32; }

  void propose(std::int32_t tile) {
    const std::size_t kind = below(8);
    const std::int32_t to = kind == 0   ? state_.home(tile)
                            : kind == 1 ? static_cast<std::int32_t>(below(at(state_.workers())))
                                        : beside_companion(tile);
    if (to == state_.where(tile)) return;
    if (state_.load(to) + state_.cost(tile) <= cap_) return move(tile, to);
    const std::vector<std::int32_t>& there = state_.tiles_at(to);
    if (there.empty()) return;
    swap(tile, there[below(there.size())]);
  }

  // Where a tile is that needs the same keys.
  std::int32_t beside_companion(std::int32_t tile) {
    const auto samples = at(traffic_.shared_samples(tile));
    if (samples == 0) return state_.home(tile);
    const auto sample = static_cast<std::int32_t>(below(samples));
    const auto companions = traffic_.companions(tile, sample);
    return state_.where(companions[below(companions.size())].tile);
  }

  // What a change may cost: falls with the square of what is left to do, to 0 in the last stage.
  std::int64_t threshold() const {
    const std::int64_t left = kStages - stage_;
    return traffic_.block_bytes() / 2 / (kStages * kStages) * left * left;
  }

  std::int64_t change(std::int32_t tile, std::int32_t to, std::int64_t most) {
    done_ += 4 + traffic_.shared_samples(tile);
    return traffic_.change(state_.destination(), tile, to, most);
  }

  void move(std::int32_t tile, std::int32_t to) {
    const std::int64_t bytes = change(tile, to, threshold_);
    if (bytes > threshold_) return;
    state_.move(tile, to);
    keep(bytes);
  }

  void swap(std::int32_t a, std::int32_t b) {
    const std::int32_t at_a = state_.where(a);
    const std::int32_t at_b = state_.where(b);
    const std::int64_t moved = state_.cost(a) - state_.cost(b);
    if (at_a == at_b || state_.load(at_b) + moved > cap_ || state_.load(at_a) - moved > cap_) {
      return;
    }
    const std::int64_t most = threshold_ + traffic_.most_saved(b);
    std::int64_t bytes = change(a, at_b, most);
    if (bytes > most) return;
    state_.move(a, at_b);
    bytes += change(b, at_a, threshold_ - bytes);
    if (bytes > threshold_) return state_.move(a, at_a);
    state_.move(b, at_a);
    keep(bytes);
  }

  void keep(std::int64_t bytes) {
    bytes_ += bytes;
    if (bytes_ >= best_bytes_) return;
    best_bytes_ = bytes_;
    best_ = state_.destination();
  }

  PlacementState& state_;
  const TileTraffic& traffic_;
  std::int64_t cap_;
  std::int64_t steps_;
  std::int64_t done_ = 0;
  std::int64_t stage_ = 0;
  std::int64_t threshold_ = 0;
  std::int64_t bytes_ = 0;       // more than at the start
  std::int64_t best_bytes_ = 0;  // the least of these
  std::vector<std::int32_t> best_;
  std::vector<std::int32_t> draws_;
  Rng rng_{0};
};

}  // namespace

std::int64_t search_steps(std::int64_t microseconds) { return microseconds * kStepsPerUs; }

std::vector<std::int32_t> search(PlacementState& state, const TileTraffic& traffic,
                                 std::int64_t cap, std::int64_t steps) {
  if (state.tiles() == 0 || steps == 0) return state.take();
  return Search(state, traffic, cap, steps).run();
}

}  // namespace libra
