#include "libra/plan/head_split.h"

#include <algorithm>

namespace libra {

HeadSplit::HeadSplit(const AttentionShape& shape, std::int32_t head_shards, std::int32_t chunks)
    : group(shape.group()),
      shard_heads(shape.q_heads / head_shards),
      chunk_heads(shard_heads / chunks),
      kv_shards(std::min(head_shards, shape.kv_heads)),
      kv_shard_heads(std::max(1, shard_heads / group)),
      kv_chunks(std::min(chunks, kv_shard_heads)),
      kv_chunk_heads(kv_shard_heads / kv_chunks),
      chunks_per_kv_chunk(chunks / kv_chunks) {}

}  // namespace libra
