// Windows repacked by WLB-LLM's packing (wlb_packing.h), with the origin of every sample.
//
//   WlbWindows repacked({.bins = 128, .bin_tokens = 262144, .equal_cost_tokens = 47000});
//   for (;;) train(repacked.repack(windows.next()));
//
// The packer knows lengths alone, so samples of one length are alike to it: of those that wait, the
// one that came first is taken first.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "libra/corpus/window.h"
#include "libra/corpus/wlb_packing.h"

namespace libra {

class WlbWindows {
 public:
  /// Throws ConfigError for options that no packer can work with.
  explicit WlbWindows(const WlbOptions& options);

  /// As many sequences as there are bins, of like work and unlike length, without padding: samples
  /// of this window and of earlier ones. Some may be empty while outliers wait. The epoch stays.
  Window repack(const Window& window);

  /// Tokens of samples that wait for a later window.
  std::int64_t waiting_tokens() const { return packer_.waiting_tokens(); }

 private:
  Packed with_origins(PackedSequence sequence);

  WlbPacker packer_;
  std::unordered_map<std::int64_t, std::deque<SampleOrigin>> origins_;  // not packed yet, by length
};

}  // namespace libra
