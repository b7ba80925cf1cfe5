// Shorter lengths in the same proportions, so that a run on CPUs ends soon.
//
//   const LengthScale scale = parse_length_scale("1/128");
//   scale_sequences(sequences, scale);    // 256K tokens become 2K
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libra/corpus/packed_sequence.h"

namespace libra::cli {

struct LengthScale {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;

  /// Rounded down, but at least 1 of what is not 0. Requires length >= 0.
  std::int64_t operator()(std::int64_t length) const;
  std::string text() const;
};

/// "a/b" with a <= b, or "b" for 1/b. Throws ConfigError.
LengthScale parse_length_scale(const std::string& text);

/// Scales every sample and the budget. All sequences get one budget, large enough for the samples
/// that could not become shorter than one token.
std::vector<PackedSequence> scale_sequences(std::vector<PackedSequence> sequences,
                                            const LengthScale& scale);

}  // namespace libra::cli
