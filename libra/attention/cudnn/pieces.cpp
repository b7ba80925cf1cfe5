#include "libra/attention/cudnn/pieces.h"

#include <algorithm>
#include <tuple>
#include <utility>

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

auto place_of_queries(const Entry& piece) {
  return std::tuple(piece.q_head, piece.kv_head, piece.q_row, piece.queries, piece.kv_row);
}

auto place_of_keys(const Entry& piece) {
  return std::tuple(piece.q_head, piece.kv_head, piece.kv_row, piece.q_row);
}

// A rectangle and what the same queries do with the keys that follow.
bool continues_keys(const Entry& a, const Entry& b) {
  return a.mask == Mask::kFull && a.q_head == b.q_head && a.kv_head == b.kv_head &&
         a.q_row == b.q_row && a.queries == b.queries && a.kv_row + a.keys == b.kv_row;
}

void extend_keys(Entry& a, const Entry& b) {
  a.keys += b.keys;
  a.mask = b.mask;
}

// Two neighbouring blocks of one sample: the second one's first query sees one key more than the
// last query of the first.
bool continues_sample(const Entry& a, const Entry& b) {
  return a.mask == Mask::kBottomRightCausal && b.mask == a.mask && a.q_head == b.q_head &&
         a.kv_head == b.kv_head && a.kv_row == b.kv_row && a.q_row + a.queries == b.q_row &&
         b.keys - b.queries == a.keys;
}

void extend_sample(Entry& a, const Entry& b) {
  a.queries += b.queries;
  a.keys = b.keys;
}

// Sorts the pieces by `place`, then merges neighbours.
template <typename Place, typename Continues, typename Extend>
void merge(std::vector<Entry>& pieces, Place place, Continues continues, Extend extend) {
  std::sort(pieces.begin(), pieces.end(),
            [&](const Entry& a, const Entry& b) { return place(a) < place(b); });
  std::vector<Entry> merged;
  merged.reserve(pieces.size());
  for (const Entry& piece : pieces) {
    if (!merged.empty() && continues(merged.back(), piece)) {
      extend(merged.back(), piece);
    } else {
      merged.push_back(piece);
    }
  }
  pieces = std::move(merged);
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
  std::vector<Entry> whole = forward_pieces(call).pieces;
  merge(whole, place_of_queries, continues_keys, extend_keys);
  merge(whole, place_of_keys, continues_sample, extend_sample);
  std::vector<Entry> result;
  result.reserve(2 * whole.size());
  for (const Entry& piece : whole) {
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
