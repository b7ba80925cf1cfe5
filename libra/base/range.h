// Half-open ranges [begin, end) of tokens and of heads: two types, so that they cannot be swapped.
#pragma once

#include <algorithm>
#include <cstdint>

namespace libra {

/// [begin, end) of type Int; empty if begin >= end. Tag only makes ranges of different things
/// different types.
template <typename Int, typename Tag>
struct Range {
  Int begin = 0;
  Int end = 0;

  constexpr Int size() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(Int value) const { return begin <= value && value < end; }
  constexpr bool contains(Range other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  friend constexpr bool operator==(Range, Range) = default;
};

using TokenRange =
    Range<std::int64_t, struct TokenTag>;  ///< tokens of a sequence, a sample or a worker's rows
using HeadRange = Range<std::int32_t, struct HeadTag>;  ///< query heads or KV heads

/// The tokens or heads in both; an empty range if there are none.
template <typename Int, typename Tag>
constexpr Range<Int, Tag> intersect(Range<Int, Tag> a, Range<Int, Tag> b) {
  const Int begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace libra
