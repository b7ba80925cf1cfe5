// Where the tokens of a pool's sequences live: homes, and the fragments into which they cut the
// samples.
//
//   sequence   | sample 0 |      sample 1       |  sample 2 |pad|
//   parts      |     part 0      |       part 1                 |      (contiguous, cp/tp = 2)
//   fragments  |    0     |  1   |      2       |     3     |          padding has none
//
// A token part is the cp/tp-th share of a sequence's tokens; the tp workers of a part own the same
// rows, each with its own heads. worker = replica * cp + part_in_sequence * tp + head_part, so part
// = worker / tp over the pool. A worker's rows are its runs laid end to end: the local order in
// which it holds Q, K and V.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/base/range.h"
#include "libra/corpus/packed_sequence.h"
#include "libra/plan/plan_options.h"

namespace libra {

/// The rows of one token part: runs of its sequence's tokens, in local order. Neighbouring runs are
/// merged.
struct TokenPart {
  std::int32_t replica = 0;
  std::vector<TokenRange> runs;
  std::int64_t rows = 0;
  friend bool operator==(const TokenPart&, const TokenPart&) = default;
};

/// A stretch of one sample that lies in consecutive rows of one part. As long as that holds:
/// fragments are maximal.
struct Fragment {
  std::int32_t sample = 0;  ///< index into HomeLayout::samples
  std::int32_t part = 0;
  TokenRange tokens;     ///< within the sample
  std::int64_t row = 0;  ///< of its first token, in the part
  friend bool operator==(const Fragment&, const Fragment&) = default;
};

/// A sample of the pool; samples are numbered through all sequences, zero-length ones included.
struct PoolSample {
  std::int32_t replica = 0;
  std::int64_t begin = 0;  ///< first token in its sequence
  std::int64_t tokens = 0;
  std::int32_t first_fragment = 0;  ///< fragments [first_fragment, end_fragment), in token order
  std::int32_t end_fragment = 0;
  friend bool operator==(const PoolSample&, const PoolSample&) = default;
};

struct HomeLayout {
  std::int32_t tp = 1;
  std::int32_t parts_per_sequence = 1;  ///< cp / tp
  std::vector<TokenPart> parts;         ///< replica-major
  std::vector<PoolSample> samples;      ///< replica-major, in sequence order
  std::vector<Fragment> fragments;      ///< in (sample, token) order

  std::int32_t workers() const { return static_cast<std::int32_t>(parts.size()) * tp; }
  const TokenPart& part_of(std::int32_t worker) const {
    return parts[static_cast<std::size_t>(worker / tp)];
  }
  std::span<const Fragment> fragments_of(std::int32_t sample) const {
    const PoolSample& s = samples[static_cast<std::size_t>(sample)];
    return std::span(fragments).subspan(
        static_cast<std::size_t>(s.first_fragment),
        static_cast<std::size_t>(s.end_fragment - s.first_fragment));
  }
  friend bool operator==(const HomeLayout&, const HomeLayout&) = default;
};

/// Requires options that check_options accepts. Throws ConfigError for sequences that
/// check_sequences (pool_limits.h) refuses, and for explicit runs that do not cover every token of
/// their sequence exactly once.
HomeLayout make_home_layout(const PlanOptions& options, std::span<const PackedSequence> sequences);

}  // namespace libra
