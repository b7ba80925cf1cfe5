// The packing algorithms behind DocumentPacker (packing.h): fragments in, packed sequences out.
//
// Used inside the room only; not installed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "libra/corpus/packing.h"

namespace libra {

/// A sample to be placed; no longer than the budget except under concat, which may cut it.
struct Fragment {
  SampleOrigin origin;
  std::int64_t tokens = 0;
};

class SequencePacker {
 public:
  virtual ~SequencePacker() = default;

  /// Places the fragment, now or later; appends to `ready` the sequences that are complete now.
  virtual void add(const Fragment& fragment, std::deque<Packed>& ready) = 0;

  /// Appends everything that is left and starts anew.
  virtual void finish(std::deque<Packed>& ready) = 0;
};

std::unique_ptr<SequencePacker> make_first_fit(const PackingOptions& options);
std::unique_ptr<SequencePacker> make_best_fit_decreasing(const PackingOptions& options);
std::unique_ptr<SequencePacker> make_concat(const PackingOptions& options);

inline Packed empty_sequence(std::int64_t tokens) { return {{tokens, {}}, {}}; }

inline void append(Packed& packed, const Fragment& fragment) {
  packed.sequence.sample_tokens.push_back(fragment.tokens);
  packed.origins.push_back(fragment.origin);
}

}  // namespace libra
