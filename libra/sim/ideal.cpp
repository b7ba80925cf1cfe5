#include "libra/sim/ideal.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include "libra/base/index.h"
#include "libra/cost/attention_shape.h"

namespace libra {
namespace {

// The least time per query-key pair and head that any part of a sample can have, in picoseconds,
// for all ways to cut the heads into equal calls: rates rise with queries and fall with keys, so
// that a shorter prefix may run faster than the whole.
class BestTimes {
 public:
  using EntryPs = std::function<std::int64_t(TokenRange, std::int32_t)>;

  BestTimes(EntryPs entry_ps, std::int32_t q_heads) : entry_ps_(std::move(entry_ps)) {
    for (std::int32_t heads = q_heads; heads >= 1; --heads) {
      if (q_heads % heads == 0) widths_.push_back(heads);
    }
    prefixes_.push_back(per_pair(1));
    for (std::int64_t tokens = 2; tokens <= DeviceProfile::kMaxSampleTokens; tokens *= 2) {
      prefixes_.push_back(std::min(prefixes_.back(), per_pair(tokens)));
    }
    q_heads_ = q_heads;
  }

  double sample_ps(std::int64_t tokens) const {
    if (tokens == 0) return 0;
    const auto power = static_cast<std::size_t>(std::bit_width(at(tokens)) - 1);
    const double pairs = static_cast<double>(query_key_pairs({0, tokens}));
    return pairs * q_heads_ * std::min(prefixes_[power], per_pair(tokens));
  }

 private:
  double per_pair(std::int64_t tokens) const {
    double best = std::numeric_limits<double>::infinity();
    const auto pairs = static_cast<double>(query_key_pairs({0, tokens}));
    for (const std::int32_t heads : widths_) {
      best = std::min(best, static_cast<double>(entry_ps_({0, tokens}, heads)) / (pairs * heads));
    }
    return best;
  }

  EntryPs entry_ps_;
  std::vector<std::int32_t> widths_;
  std::vector<double> prefixes_;  // by power of two: the least up to there
  double q_heads_ = 0;
};

}  // namespace

std::vector<std::vector<PoolTimes>> ideal_times(const Environment& environment,
                                                std::span<const PackedSequence> slots) {
  const Scenario& scenario = environment.scenario();
  const DeviceProfile& device = environment.device();
  const std::int32_t q_heads = scenario.plan.shape.q_heads;
  const BestTimes forward_times(
      [&device](TokenRange queries, std::int32_t heads) {
        return device.forward_ps(queries, heads);
      },
      q_heads);
  const BestTimes backward_times(
      [&device](TokenRange queries, std::int32_t heads) {
        return device.backward_ps(queries, heads);
      },
      q_heads);
  double forward = 0;
  double backward = 0;
  std::int64_t work = 0;
  for (const PackedSequence& sequence : slots) {
    for (const std::int64_t tokens : sequence.sample_tokens) {
      forward += forward_times.sample_ps(tokens);
      backward += backward_times.sample_ps(tokens);
      work += query_key_pairs({0, tokens}) * q_heads;
    }
  }
  const double share =
      environment.seconds(1) / (static_cast<double>(scenario.stage_gpus()) * scenario.ga());
  forward *= share;
  backward *= share;
  PoolTimes even;
  even.workers.assign(at(scenario.stage_gpus()), {forward, forward, backward, backward});
  std::vector<std::vector<PoolTimes>> times(at(scenario.ga()), {even});
  times.front().front().work = work;
  return times;
}

}  // namespace libra
