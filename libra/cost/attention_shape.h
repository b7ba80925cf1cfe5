// Heads and head dimensions of a model's attention, and what work and bytes follow from them.
#pragma once

#include <cstdint>

#include "libra/base/range.h"

namespace libra {

struct AttentionShape {
  std::int32_t q_heads = 32;
  std::int32_t kv_heads = 8;     ///< divides q_heads
  std::int32_t head_dim = 128;   ///< of queries and keys
  std::int32_t value_dim = 128;  ///< of values and outputs

  std::int32_t group() const { return q_heads / kv_heads; }  ///< query heads that share a KV head
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

constexpr std::int32_t kMaxHeads = 4096;
constexpr std::int32_t kMaxHeadDim = 1024;

/// Throws ConfigError that names the first rule broken and the nearest legal value: heads in [1,
/// kMaxHeads], dims in [1, kMaxHeadDim], kv_heads divides q_heads.
void validate(const AttentionShape& shape);

/// Query-key pairs per head of the causal queries [begin, end) of one sample: query i sees keys [0,
/// i]. Requires end < 2^31.
constexpr std::int64_t query_key_pairs(TokenRange queries) {
  return queries.empty()
             ? 0
             : (queries.end * (queries.end + 1) - queries.begin * (queries.begin + 1)) / 2;
}

/// Floating-point operations of the forward pass: 2 * (head_dim + value_dim) per pair and head.
constexpr double forward_flops(const AttentionShape& shape, std::int64_t pairs_times_heads) {
  return 2.0 * (shape.head_dim + shape.value_dim) * static_cast<double>(pairs_times_heads);
}

/// The backward pass does 5 matrix products where the forward pass does 2.
constexpr double backward_flops(const AttentionShape& shape, std::int64_t pairs_times_heads) {
  return 2.5 * forward_flops(shape, pairs_times_heads);
}

}  // namespace libra
