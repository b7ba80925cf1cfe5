// Where the pieces of a batch lie in packed tensors: rows of [heads, dim] without gaps, one piece
// after the other.
//
// Rows that lie together in a dense tensor are packed where they are: piece i at its own row,
// counted from the first one. Then Q need not be copied (see sdpa_graph.h for why it otherwise
// must), nor gradients that are written, and there may be gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libra/attention/cudnn/batches.h"

namespace libra::cudnn {

enum class Side : std::uint8_t { kQueries, kKeys };

/// Rows and first head of a piece on one side.
struct PieceRows {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int32_t head = 0;
};

PieceRows rows_of(const Entry& piece, Side side);

struct Packing {
  std::vector<std::int64_t> rows;   ///< the first packed row of each piece
  std::int64_t total = 0;           ///< packed rows, gaps included
  std::optional<PieceRows> origin;  ///< if in place: the caller's row and head of packed row 0
};

Packing pack_in_order(const std::vector<Entry>& pieces, Side side);

/// In place, if no two pieces share a row, all have the same head, and no more than `max_total`
/// rows lie between the first and the last.
std::optional<Packing> pack_in_place(const std::vector<Entry>& pieces, Side side,
                                     std::int64_t max_total);

}  // namespace libra::cudnn
