#include "libra/plan/head_split.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "libra/base/error.h"
#include "libra/plan/plan_options.h"

namespace libra {
namespace {

// Calls check for every legal (query heads, KV heads, H, M) up to 24 heads.
template <typename Check>
int for_all_legal_splits(const Check& check) {
  int legal = 0;
  for (std::int32_t q = 1; q <= 24; ++q) {
    for (std::int32_t kv = 1; kv <= q; ++kv) {
      for (std::int32_t shards = 1; shards <= q; ++shards) {
        for (std::int32_t chunks = 1; chunks <= q; ++chunks) {
          PlanOptions options;
          options.shape = {q, kv, 8, 8};
          options.head_shards = shards;
          options.chunks = chunks;
          try {
            check_options(options, 1);
          } catch (const ConfigError&) {
            continue;
          }
          ++legal;
          check(options);
        }
      }
    }
  }
  return legal;
}

// The KV heads that query heads [begin, end) use, head by head.
std::set<std::int32_t> kv_heads_of(const AttentionShape& shape, std::int32_t begin,
                                   std::int32_t end) {
  std::set<std::int32_t> heads;
  for (std::int32_t head = begin; head < end; ++head) heads.insert(head / shape.group());
  return heads;
}

std::set<std::int32_t> range(std::int32_t begin, std::int32_t count) {
  std::set<std::int32_t> heads;
  for (std::int32_t head = begin; head < begin + count; ++head) heads.insert(head);
  return heads;
}

void expect_same_as_enumerated(const PlanOptions& options) {
  SCOPED_TRACE(::testing::Message()
               << "q " << options.shape.q_heads << " kv " << options.shape.kv_heads << " H "
               << options.head_shards << " M " << options.chunks);
  const HeadSplit split(options.shape, options.head_shards, options.chunks);
  ASSERT_EQ(split.shard_heads * options.head_shards, options.shape.q_heads);
  ASSERT_EQ(split.chunk_heads * options.chunks, split.shard_heads);
  ASSERT_EQ(split.kv_shards * split.kv_shard_heads, options.shape.kv_heads);
  ASSERT_EQ(split.kv_chunks * split.kv_chunk_heads, split.kv_shard_heads);
  ASSERT_EQ(split.kv_chunks * split.chunks_per_kv_chunk, options.chunks);
  for (std::int32_t shard = 0; shard < options.head_shards; ++shard) {
    const std::int32_t first_kv = split.kv_shard_of(shard) * split.kv_shard_heads;
    const std::int32_t first_q = shard * split.shard_heads;
    ASSERT_EQ(kv_heads_of(options.shape, first_q, first_q + split.shard_heads),
              range(first_kv, split.kv_shard_heads));
    for (std::int32_t chunk = 0; chunk < options.chunks; ++chunk) {
      const std::int32_t q = first_q + chunk * split.chunk_heads;
      ASSERT_EQ(
          kv_heads_of(options.shape, q, q + split.chunk_heads),
          range(first_kv + split.kv_chunk_of(chunk) * split.kv_chunk_heads, split.kv_chunk_heads));
    }
  }
}

TEST(HeadSplit, EveryShardAndChunkUsesTheKvHeadsThatItsQueryHeadsShare) {
  EXPECT_GT(for_all_legal_splits(expect_same_as_enumerated), 500);
}

TEST(HeadSplit, EachKvChunkIsNewOnceAndDoneOnceInAShard) {
  for_all_legal_splits([](const PlanOptions& options) {
    const HeadSplit split(options.shape, options.head_shards, options.chunks);
    std::vector<std::int32_t> seen;
    for (std::int32_t chunk = 0; chunk < options.chunks; ++chunk) {
      const bool is_new = seen.empty() || seen.back() != split.kv_chunk_of(chunk);
      ASSERT_EQ(split.first_of_kv_chunk(chunk), is_new);
      if (is_new) seen.push_back(split.kv_chunk_of(chunk));
      const bool is_last =
          chunk + 1 == options.chunks || split.kv_chunk_of(chunk + 1) != split.kv_chunk_of(chunk);
      ASSERT_EQ(split.last_of_kv_chunk(chunk), is_last);
    }
    ASSERT_EQ(static_cast<std::int32_t>(seen.size()), split.kv_chunks);
  });
}

TEST(HeadSplit, OfTheHeaderExample) {
  const HeadSplit split({32, 8, 128, 128}, 2, 4);
  EXPECT_EQ(split.shard_heads, 16);
  EXPECT_EQ(split.kv_shard_heads, 4);
  EXPECT_EQ(split.chunk_heads, 4);
  EXPECT_EQ(split.kv_chunk_heads, 1);
}

}  // namespace
}  // namespace libra
