// How heads are cut into shards and chunks, and which KV heads go with them.
//
// With 32 query heads, 8 KV heads (g = 4), H = 2, M = 4:
//
//   shard 0: q heads [0, 16), kv heads [0, 4)    chunk m: q heads [4m, 4m + 4), kv head m
//   shard 1: q heads [16, 32), kv heads [4, 8)   ...
//
// When a chunk is narrower than g, several chunks of a shard use the same KV head (kv_chunks < M);
// when a shard is narrower than g, several shards share one KV shard.
#pragma once

#include <cstdint>

#include "libra/cost/attention_shape.h"

namespace libra {

struct HeadSplit {
  /// Requires options that check_options accepts: widths divide g or are multiples of it.
  HeadSplit(const AttentionShape& shape, std::int32_t head_shards, std::int32_t chunks);

  std::int32_t group;                ///< g: query heads per KV head
  std::int32_t shard_heads;          ///< query heads of a shard: h_q / H
  std::int32_t chunk_heads;          ///< query heads of a chunk: h_q / (H M)
  std::int32_t kv_shards;            ///< KV shards of a sequence
  std::int32_t kv_shard_heads;       ///< KV heads of a KV shard
  std::int32_t kv_chunks;            ///< parts in which a KV shard travels; divides M
  std::int32_t kv_chunk_heads;       ///< KV heads of such a part
  std::int32_t chunks_per_kv_chunk;  ///< M / kv_chunks

  std::int32_t kv_shard_of(std::int32_t shard) const {
    return static_cast<std::int32_t>(std::int64_t{shard} * shard_heads /
                                     (std::int64_t{kv_shard_heads} * group));
  }
  std::int32_t kv_chunk_of(std::int32_t chunk) const { return chunk / chunks_per_kv_chunk; }
  bool first_of_kv_chunk(std::int32_t chunk) const { return chunk % chunks_per_kv_chunk == 0; }
  bool last_of_kv_chunk(std::int32_t chunk) const {
    return chunk % chunks_per_kv_chunk == chunks_per_kv_chunk - 1;
  }
};

}  // namespace libra
