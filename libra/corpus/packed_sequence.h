// A packed sequence: samples laid end to end in a fixed number of tokens, each attending only to
// itself.
//
//   |<------------------- tokens ------------------->|
//   | sample 0 | sample 1 | sample 2 |    padding    |
#pragma once

#include <cstdint>
#include <vector>

namespace libra {

/// The longest that can be packed and planned: work is counted in 64 bits, and grows with the
/// square.
inline constexpr std::int64_t kMaxSequenceTokens = std::int64_t{1} << 30;

/// What planning needs of it, and nothing else: two sequences with equal lengths have equal plans.
struct PackedSequence {
  std::int64_t tokens = 0;  ///< the budget, padding included
  std::vector<std::int64_t>
      sample_tokens;  ///< in order; zeros allowed; sum <= tokens; the rest is padding

  friend bool operator==(const PackedSequence&, const PackedSequence&) = default;
};

}  // namespace libra
