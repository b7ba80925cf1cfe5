#include "libra/attention/cudnn/packing.h"

#include <algorithm>

namespace libra::cudnn {
namespace {

bool same_head(const std::vector<PieceRows>& runs) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const PieceRows& run) { return run.head == runs.front().head; });
}

bool disjoint(std::vector<PieceRows> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const PieceRows& a, const PieceRows& b) { return a.row < b.row; });
  const auto overlap = std::adjacent_find(
      runs.begin(), runs.end(),
      [](const PieceRows& a, const PieceRows& b) { return a.row + a.rows > b.row; });
  return overlap == runs.end();
}

}  // namespace

PieceRows rows_of(const Entry& piece, Side side) {
  if (side == Side::kQueries) return {piece.q_row, piece.queries, piece.q_head};
  return {piece.kv_row, piece.keys, piece.kv_head};
}

Packing pack_in_order(const std::vector<Entry>& pieces, Side side) {
  Packing result;
  result.rows.reserve(pieces.size());
  for (const Entry& piece : pieces) {
    result.rows.push_back(result.total);
    result.total += rows_of(piece, side).rows;
  }
  return result;
}

std::optional<Packing> pack_in_place(const std::vector<Entry>& pieces, Side side,
                                     std::int64_t max_total) {
  std::vector<PieceRows> runs;
  runs.reserve(pieces.size());
  for (const Entry& piece : pieces) runs.push_back(rows_of(piece, side));
  const auto by_row = [](const PieceRows& a, const PieceRows& b) { return a.row < b.row; };
  const PieceRows first = *std::min_element(runs.begin(), runs.end(), by_row);
  Packing result;
  result.origin = first;
  result.rows.reserve(runs.size());
  for (const PieceRows& run : runs) {
    result.rows.push_back(run.row - first.row);
    result.total = std::max(result.total, run.row + run.rows - first.row);
  }
  if (result.total > max_total || !same_head(runs) || !disjoint(std::move(runs))) return {};
  return result;
}

}  // namespace libra::cudnn
