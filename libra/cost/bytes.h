// Bytes that one token has in each tensor of attention, for a number of heads: what an exchange of
// that token costs.
//
//   kv_token_bytes(shape, 2, DType::kBf16)  // K and V of one token, two KV heads: 1024 at dim 128
//
// `storage` is the type of Q, K, V and O. Gradients of Q and O travel in it too; those of K and V,
// and the log-sum-exp, are sums that travel in accumulation_dtype(storage). Heads may be any part
// of the shape's. Everything is 64-bit: a million tokens of 64 heads overflow 32.
#pragma once

#include <cstdint>

#include "libra/base/dtype.h"
#include "libra/cost/attention_shape.h"

namespace libra {

inline std::int64_t q_token_bytes(const AttentionShape& shape, std::int64_t q_heads,
                                  DType storage) {
  return q_heads * shape.head_dim * element_bytes(storage);
}

inline std::int64_t k_token_bytes(const AttentionShape& shape, std::int64_t kv_heads,
                                  DType storage) {
  return kv_heads * shape.head_dim * element_bytes(storage);
}

inline std::int64_t v_token_bytes(const AttentionShape& shape, std::int64_t kv_heads,
                                  DType storage) {
  return kv_heads * shape.value_dim * element_bytes(storage);
}

inline std::int64_t o_token_bytes(const AttentionShape& shape, std::int64_t q_heads,
                                  DType storage) {
  return q_heads * shape.value_dim * element_bytes(storage);
}

/// One number per query head.
inline std::int64_t lse_token_bytes(std::int64_t q_heads, DType storage) {
  return q_heads * element_bytes(accumulation_dtype(storage));
}

inline std::int64_t kv_token_bytes(const AttentionShape& shape, std::int64_t kv_heads,
                                   DType storage) {
  return k_token_bytes(shape, kv_heads, storage) + v_token_bytes(shape, kv_heads, storage);
}

inline std::int64_t dq_token_bytes(const AttentionShape& shape, std::int64_t q_heads,
                                   DType storage) {
  return q_token_bytes(shape, q_heads, storage);
}

inline std::int64_t do_token_bytes(const AttentionShape& shape, std::int64_t q_heads,
                                   DType storage) {
  return o_token_bytes(shape, q_heads, storage);
}

inline std::int64_t dk_token_bytes(const AttentionShape& shape, std::int64_t kv_heads,
                                   DType storage) {
  return k_token_bytes(shape, kv_heads, accumulation_dtype(storage));
}

inline std::int64_t dv_token_bytes(const AttentionShape& shape, std::int64_t kv_heads,
                                   DType storage) {
  return v_token_bytes(shape, kv_heads, accumulation_dtype(storage));
}

inline std::int64_t dkv_token_bytes(const AttentionShape& shape, std::int64_t kv_heads,
                                    DType storage) {
  return kv_token_bytes(shape, kv_heads, accumulation_dtype(storage));
}

}  // namespace libra
