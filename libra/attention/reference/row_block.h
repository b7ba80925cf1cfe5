// What the forward and backward kernels share: how an entry is cut into blocks of query rows and
// tiles of keys, and how those are moved between tensors and tiles.
//
// All query heads that share a KV head are worked on together: the rows of a group are its (query,
// head) pairs, query by query, so that each key tile is converted once for all of them.
//
//   rows of a group with 2 heads:  (query 0, head 0) (query 0, head 1) (query 1, head 0) ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "libra/attention/attention.h"
#include "libra/attention/reference/mask.h"
#include "libra/attention/reference/storage.h"
#include "libra/attention/reference/tile.h"

namespace libra::reference {

inline constexpr std::int64_t kBlockRows = 128;
inline constexpr std::int64_t kTileKeys = 64;

/// One KV head of one entry, with the query heads that use it.
struct Group {
  const Entry* entry;
  std::int64_t q_head;   ///< first query head in the tensors
  std::int64_t kv_head;  ///< the KV head in the tensors
  std::int64_t heads;    ///< query heads

  std::int64_t rows() const { return entry->queries * heads; }
};

/// Up to kBlockRows consecutive rows of a group.
struct RowBlock {
  Group group;
  std::int64_t begin;
  std::int64_t rows;

  const Entry& entry() const { return *group.entry; }
  std::int64_t last_query() const { return (begin + rows - 1) / group.heads; }
  /// Keys that any row of the block sees: [0, result).
  std::int64_t keys() const { return visible_keys(entry(), last_query()); }
};

template <typename T>
T* query_vector(const TensorView& tensor, const RowBlock& block, std::int64_t row) {
  const std::int64_t query = (block.begin + row) / block.group.heads;
  const std::int64_t head = (block.begin + row) % block.group.heads;
  return vector_at<T>(tensor, block.entry().q_row + query, block.group.q_head + head);
}

/// Calls function(RowBlock) for all rows of all entries, in the order of the call.
template <typename Function>
void for_each_row_block(const AttentionCall& call, Function&& function) {
  const std::int64_t heads = call.q_heads / call.kv_heads;
  for (const Entry& entry : call.entries) {
    const std::int64_t q_head = std::int64_t{entry.q_head} + call.q_head_shift;
    const std::int64_t kv_head = std::int64_t{entry.kv_head} + call.kv_head_shift;
    for (std::int64_t i = 0; i < call.kv_heads; ++i) {
      const Group group{&entry, q_head + i * heads, kv_head + i, heads};
      for (std::int64_t begin = 0; begin < group.rows(); begin += kBlockRows) {
        function(RowBlock{group, begin, std::min(kBlockRows, group.rows() - begin)});
      }
    }
  }
}

/// tile[row][c] = tensor * scale for the block's rows.
template <typename Storage, typename Acc>
void load_rows(const TensorView& tensor, const RowBlock& block, Acc scale, Tile<Acc>& tile) {
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const Storage* const from = query_vector<const Storage>(tensor, block, row);
    Acc* const to = tile.row(row);
    for (std::int64_t c = 0; c < tensor.dim; ++c) to[c] = rounded<Acc>(from[c]) * scale;
  }
}

/// to[c][row] = from[row][c]. Lanes beyond `rows` become zero, up to a whole line.
template <typename Acc>
void transpose(const Tile<Acc>& from, std::int64_t rows, std::int64_t columns, Tile<Acc>& to) {
  to.clear(columns);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < columns; ++c) to.row(c)[row] = from.row(row)[c];
  }
}

/// tile[key][c] = keys [first, first + keys) of the group's KV head.
template <typename Storage, typename Acc>
void load_keys(const TensorView& tensor, const Group& group, std::int64_t first, std::int64_t keys,
               Tile<Acc>& tile) {
  for (std::int64_t key = 0; key < keys; ++key) {
    const Storage* const from =
        vector_at<const Storage>(tensor, group.entry->kv_row + first + key, group.kv_head);
    Acc* const to = tile.row(key);
    for (std::int64_t c = 0; c < tensor.dim; ++c) to[c] = rounded<Acc>(from[c]);
  }
}

/// Sets to -inf what the block's rows may not see of keys [first, first + keys).
template <typename Acc>
void apply_mask(const RowBlock& block, std::int64_t first, std::int64_t keys, Tile<Acc>& scores) {
  for (std::int64_t key = 0; key < keys; ++key) {
    const std::int64_t seen_from = first_query_seeing(block.entry(), first + key);
    const std::int64_t hidden =
        std::clamp(seen_from * block.group.heads - block.begin, std::int64_t{0}, block.rows);
    std::fill_n(scores.row(key), hidden, -std::numeric_limits<Acc>::infinity());
  }
}

}  // namespace libra::reference
