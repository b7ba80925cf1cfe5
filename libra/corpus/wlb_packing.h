// WLB-LLM's packing: samples of a window into bins of like work, not of like length.
//
// The work of a bin is the sum of (l / L0)^2 + l / L0 over its samples; L0 is the length at which
// a sample's attention costs as much as its linear layers. Longest first, each into the bin with
// the least work if that has room under the token cap, else into the shortest bin if that has room,
// else the sample waits for the next window.
//
// Outliers are samples that are more work than the mean bin. They wait in queues by length (powers
// of two) until a queue has one for each bin. So an optimizer step trains on other samples than
// without it: the price of balance without moving attention. `delay = false` packs every sample in
// its own window instead: what finds no room goes to the shortest bin.
//
//   WlbPacker packer({.bins = 128, .bin_tokens = 262144, .equal_cost_tokens = 47000});
//   std::vector<PackedSequence> bins = packer.pack(window);   // in order: bin 0 had the longest
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "libra/corpus/packed_sequence.h"

namespace libra {

struct WlbOptions {
  std::int32_t bins = 1;         ///< DP x microbatches
  std::int64_t bin_tokens = 0;   ///< the mean: of a sequence before repacking
  double token_cap = 1.25;       ///< most tokens of a bin over the mean
  double equal_cost_tokens = 1;  ///< L0
  bool delay = true;
};

class WlbPacker {
 public:
  explicit WlbPacker(const WlbOptions& options) : options_(options) {}

  /// The samples of these sequences, and those that waited, in `bins` sequences. A sequence's
  /// `tokens` is what its samples have. O(samples x bins).
  std::vector<PackedSequence> pack(std::span<const PackedSequence> window);

  /// Tokens of samples that wait now.
  std::int64_t waiting_tokens() const;

 private:
  double work(std::int64_t tokens) const;
  void release_full_queues(std::vector<std::int64_t>& samples);
  void queue_outliers(std::vector<std::int64_t>& samples);

  WlbOptions options_;
  std::vector<std::int64_t> deferred_;                 // found no room
  std::map<int, std::vector<std::int64_t>> outliers_;  // by length class
};

}  // namespace libra
