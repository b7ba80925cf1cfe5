// DistCA's planner, from its published description: which rows of which documents are computed
// where, over all workers of a GA index.
//
// An item is a document's share on one rank. A document that lies on several ranks is cut head and
// tail: its rows are taken alternately from its beginning and its end (0, l-1, 1, l-2, ...), so
// that every pair of rows costs l + 1 query-key pairs, and each rank holds a stretch of that order:
//
//   rows of a document   | head of 0 | head of 1 | head of 2 | tail of 2 | tail of 1 | tail of 0 |
//
// Workers below the mean work receive, the neediest first: repeatedly the item of a donor (a worker
// above the mean) with the least (Q bytes of the moved rows + 2 x KV bytes of the whole document)
// per query-key pair gives row pairs, until what is missing is within tolerance x mean.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/base/range.h"
#include "libra/corpus/packed_sequence.h"

namespace libra {

/// Positions [begin, end) of a document's alternating order.
struct DistcaItem {
  std::int32_t home = 0;      ///< worker that holds them
  std::int32_t worker = 0;    ///< that computes them
  std::int32_t document = 0;  ///< numbered through the sequences
  std::int64_t tokens = 0;    ///< of the document
  TokenRange positions;

  /// The rows at these positions: head and tail; one may be empty. All rows: one range.
  TokenRange head() const;
  TokenRange tail() const;
  std::int64_t pairs() const;
};

struct DistcaOptions {
  std::int32_t cp = 1;
  double tolerance = 0.1;
  std::int64_t q_row_bytes = 1;   ///< all heads
  std::int64_t kv_row_bytes = 1;  ///< K and V, all heads
};

/// Items of all workers (sequence s is on workers [s * cp, (s + 1) * cp), contiguous shares), those
/// that moved with their new worker. Every row of every document is in exactly one item.
std::vector<DistcaItem> distca_plan(std::span<const PackedSequence> sequences,
                                    const DistcaOptions& options);

}  // namespace libra
