// Groups pieces into batches, one cuDNN call each, whose shapes come from few buckets, so that few
// graphs serve every call.
//
// Longest pieces first: 627 TFLOP/s against 570 with the long ones last. Rounding up costs little
// time; what it costs in scratch memory decides how much work a batch may hold.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"

namespace libra::cudnn {

/// What a batch must have room for, or what a bucket has.
struct BatchShape {
  std::int64_t entries = 0;
  std::int64_t max_queries = 0, max_keys = 0;      ///< of one piece
  std::int64_t total_queries = 0, total_keys = 0;  ///< of all pieces

  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

inline constexpr std::int64_t kMaxEntries = 2048;  ///< of one batch

struct BatchRules {
  /// Scratch memory of a bucket, in bytes per row of its totals.
  std::int64_t query_row_bytes = 0, key_row_bytes = 0;
  /// Bytes per entries * max_queries * max_keys. If not 0, buckets are tight: powers of two.
  /// Otherwise they are few and roomy.
  std::int64_t pair_bytes = 0;
  /// A batch is closed before its bucket would exceed this. A piece that exceeds it alone is halved
  /// until it fits, or has no more than 128 queries and keys.
  std::int64_t max_bytes = 0;
  /// Heads of every piece: in one batch, pieces' heads are the same ones or others altogether.
  /// 0: no matter.
  std::int32_t q_heads = 0, kv_heads = 0;
  /// Batches take neighbouring query rows, and have room for all rows from the first to the last.
  /// Otherwise longest first. Requires row bytes.
  bool by_rows = false;
};

/// The smallest bucket that has room for the shape. Requires at most kMaxEntries entries.
BatchShape bucket(const BatchShape& shape, const BatchRules& rules);

std::int64_t scratch_bytes(const BatchShape& bucket, const BatchRules& rules);

/// Whether make_batches would leave the piece whole.
bool fits_uncut(const Entry& piece, const BatchRules& rules);

/// All roomy buckets within max_bytes that entries of up to `max_rows` queries and keys each can
/// need. Requires pair_bytes = 0.
std::vector<BatchShape> all_buckets(std::int64_t max_rows, const BatchRules& rules);

struct Batch {
  Mask mask = Mask::kFull;
  BatchShape bucket;
  std::vector<Entry> pieces;  ///< by falling number of pairs
};

/// Every piece once, or in parts; batches of one mask follow each other. Depends on the pieces'
/// order only between equally long ones, or of equal rows. Complexity: O(n log n).
std::vector<Batch> make_batches(std::vector<Entry> pieces, const BatchRules& rules);

}  // namespace libra::cudnn
