#include "libra/corpus/wlb_windows.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "libra/base/error.h"

namespace libra {
namespace {

const WlbOptions& checked(const WlbOptions& options) {
  if (options.bins < 1 || options.bin_tokens < 1)
    throw ConfigError("WLB packing needs at least one bin of at least one token");
  if (!(options.token_cap >= 1 && options.token_cap <= 16)) {
    throw ConfigError(fmt::format("the token cap of WLB packing is {}: it must be from 1 to 16",
                                  options.token_cap));
  }
  if (!(options.equal_cost_tokens > 0)) {
    throw ConfigError(fmt::format(
        "WLB packing needs the length at which attention costs as much as the linear layers, "
        "equal_cost_tokens: {} is not above 0",
        options.equal_cost_tokens));
  }
  return options;
}

}  // namespace

WlbWindows::WlbWindows(const WlbOptions& options) : packer_(checked(options)) {}

Window WlbWindows::repack(const Window& window) {
  std::vector<PackedSequence> sequences;
  sequences.reserve(window.sequences.size());
  for (const Packed& packed : window.sequences) {
    sequences.push_back(packed.sequence);
    for (std::size_t i = 0; i < packed.origins.size(); ++i)
      origins_[packed.sequence.sample_tokens[i]].push_back(packed.origins[i]);
  }
  Window repacked;
  repacked.epoch = window.epoch;
  std::vector<PackedSequence> bins = packer_.pack(sequences);
  repacked.sequences.reserve(bins.size());
  for (PackedSequence& bin : bins) repacked.sequences.push_back(with_origins(std::move(bin)));
  return repacked;
}

Packed WlbWindows::with_origins(PackedSequence sequence) {
  Packed packed{std::move(sequence), {}};
  packed.origins.reserve(packed.sequence.sample_tokens.size());
  for (const std::int64_t tokens : packed.sequence.sample_tokens) {
    const auto of_length = origins_.find(tokens);
    packed.origins.push_back(of_length->second.front());
    of_length->second.pop_front();
    if (of_length->second.empty()) origins_.erase(of_length);
  }
  return packed;
}

}  // namespace libra
