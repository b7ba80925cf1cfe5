// What a mask (attention.h) lets a query see. All three see a prefix of the keys that never shrinks
// from one query to the next; where the definition asks for fewer than no keys (bottom-right with
// more queries than keys) or more than there are (top-left), it is cut to [0, keys].
#pragma once

#include <algorithm>
#include <cstdint>

#include "libra/attention/attention.h"

namespace libra::reference {

/// Keys that query `query` of the entry sees: [0, result).
inline std::int64_t visible_keys(const Entry& entry, std::int64_t query) {
  if (entry.mask == Mask::kFull) return entry.keys;
  const bool top_left = entry.mask == Mask::kTopLeftCausal;
  const std::int64_t last = top_left ? query : query + entry.keys - entry.queries;
  return std::clamp(last + 1, std::int64_t{0}, entry.keys);
}

/// The first query that sees `key`, which is a key of the entry; may be >= entry.queries.
inline std::int64_t first_query_seeing(const Entry& entry, std::int64_t key) {
  if (entry.mask == Mask::kFull) return 0;
  const bool top_left = entry.mask == Mask::kTopLeftCausal;
  return std::max<std::int64_t>(top_left ? key : key - (entry.keys - entry.queries), 0);
}

}  // namespace libra::reference
