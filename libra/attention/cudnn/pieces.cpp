#include "libra/attention/cudnn/pieces.h"

#include <algorithm>

namespace libra::cudnn {
namespace {

constexpr std::int64_t kTileRows = 128;

Entry shifted(Entry entry, const AttentionCall& call) {
  entry.q_head += call.q_head_shift;
  entry.kv_head += call.kv_head_shift;
  return entry;
}

// Queries from `first` on, against all keys.
Entry later_queries(Entry piece, std::int64_t first, Mask mask) {
  piece.q_row += first;
  piece.queries -= first;
  piece.mask = mask;
  return piece;
}

Entry square(Entry piece, std::int64_t rows, Mask mask) {
  piece.queries = piece.keys = rows;
  piece.mask = mask;
  return piece;
}

Entry earlier_keys(Entry piece, std::int64_t keys) {
  piece.keys = keys;
  piece.mask = Mask::kFull;
  return piece;
}

Entry later_keys(Entry piece, std::int64_t first) {
  piece.kv_row += first;
  piece.keys -= first;
  return piece;
}

// Queries past the last key see every key.
void add_top_left(const Entry& entry, std::vector<Entry>& pieces) {
  const std::int64_t rows = std::min(entry.queries, entry.keys);
  pieces.push_back(square(entry, rows, Mask::kBottomRightCausal));
  if (entry.queries > rows) pieces.push_back(later_queries(entry, rows, Mask::kFull));
}

// The first queries see nothing if there are more of them than keys.
void add_bottom_right(const Entry& entry, ForwardPieces& out) {
  const std::int64_t blind = std::max<std::int64_t>(entry.queries - entry.keys, 0);
  if (blind > 0) out.keyless.push_back({entry.q_row, blind, entry.q_head});
  out.pieces.push_back(later_queries(entry, blind, Mask::kBottomRightCausal));
}

void add(const Entry& entry, ForwardPieces& out) {
  if (entry.queries == 0) return;
  if (entry.keys == 0) {
    out.keyless.push_back({entry.q_row, entry.queries, entry.q_head});
  } else if (entry.mask == Mask::kFull) {
    out.pieces.push_back(entry);
  } else if (entry.mask == Mask::kTopLeftCausal) {
    add_top_left(entry, out.pieces);
  } else {
    add_bottom_right(entry, out);
  }
}

// Half of the rows, in whole tiles if there are some.
std::int64_t cut(std::int64_t rows) {
  const std::int64_t tiles = rows / 2 / kTileRows * kTileRows;
  return tiles > 0 ? tiles : rows / 2;
}

}  // namespace

ForwardPieces forward_pieces(const AttentionCall& call) {
  ForwardPieces result;
  result.pieces.reserve(call.entries.size());
  for (const Entry& entry : call.entries) add(shifted(entry, call), result);
  return result;
}

std::vector<Entry> backward_pieces(const AttentionCall& call) {
  std::vector<Entry> result;
  result.reserve(call.entries.size());
  for (const Entry& piece : forward_pieces(call).pieces) {
    if (piece.mask == Mask::kFull) {
      result.push_back(piece);
      continue;
    }
    const std::int64_t prefix = piece.keys - piece.queries;
    result.push_back(square(later_keys(piece, prefix), piece.queries, Mask::kTopLeftCausal));
    if (prefix > 0) result.push_back(earlier_keys(piece, prefix));
  }
  return result;
}

std::vector<Entry> halves(const Entry& piece) {
  if (piece.mask == Mask::kTopLeftCausal) {
    const std::int64_t first = cut(piece.queries);
    const Entry later = later_queries(piece, first, piece.mask);
    return {square(piece, first, piece.mask), later_keys(later, first), earlier_keys(later, first)};
  }
  if (piece.keys >= piece.queries) {
    const std::int64_t first = cut(piece.keys);
    return {earlier_keys(piece, first), later_keys(piece, first)};
  }
  Entry earlier = piece;
  earlier.queries = cut(piece.queries);
  return {earlier, later_queries(piece, earlier.queries, piece.mask)};
}

std::int64_t num_pairs(const Entry& piece) {
  const std::int64_t hidden =
      piece.mask == Mask::kFull ? 0 : piece.queries * (piece.queries - 1) / 2;
  return piece.queries * piece.keys - hidden;
}

}  // namespace libra::cudnn
