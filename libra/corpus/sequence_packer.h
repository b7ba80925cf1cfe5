// The packing algorithms behind DocumentPacker (packing.h): samples in, packed sequences out.
//
// Used inside the room only; not installed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "libra/corpus/packing.h"

namespace libra {

/// A sample to be placed; no longer than the budget except under concat, which may cut it.
struct PendingSample {
  SampleOrigin origin;
  std::int64_t tokens = 0;
};

class SequencePacker {
 public:
  virtual ~SequencePacker() = default;

  /// Places the sample, now or later; appends to `ready` the sequences that are complete now.
  virtual void add(const PendingSample& pending, std::deque<Packed>& ready) = 0;

  /// Appends everything that is left and starts anew.
  virtual void finish(std::deque<Packed>& ready) = 0;
};

std::unique_ptr<SequencePacker> make_first_fit(const PackingOptions& options);
std::unique_ptr<SequencePacker> make_best_fit_decreasing(const PackingOptions& options);
std::unique_ptr<SequencePacker> make_concat(const PackingOptions& options);

inline Packed empty_sequence(std::int64_t tokens) { return {{tokens, {}}, {}}; }

inline void append(Packed& packed, const PendingSample& pending) {
  packed.sequence.sample_tokens.push_back(pending.tokens);
  packed.origins.push_back(pending.origin);
}

}  // namespace libra
