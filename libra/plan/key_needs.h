// Which keys a block needs, sample by sample: what placers charge for and what is then fetched.
//
// A block may hold several pieces of one sample (zigzag homes do that all the time); their keys
// overlap, and are needed once. All head shards of a block need the same tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/plan/kv_groups.h"
#include "libra/plan/tiling.h"

namespace libra {

/// Keys [0, tokens) of the sample.
struct KeyNeed {
  std::int32_t sample = 0;
  std::int64_t tokens = 0;
  bool only_here = false;  ///< the whole sample lies in this block: no other block needs it
};

class KeyNeeds {
 public:
  /// O(pieces), plus a sort of those blocks whose samples are not in order (explicit homes).
  KeyNeeds(const KvGroups& groups, const HomeLayout& layout, const Tiling& tiling);

  /// Of a block, each sample once, in increasing order.
  std::span<const KeyNeed> of(std::int32_t block) const {
    const auto first = static_cast<std::size_t>(first_[static_cast<std::size_t>(block)]);
    const auto end = static_cast<std::size_t>(first_[static_cast<std::size_t>(block) + 1]);
    return std::span(needs_).subspan(first, end - first);
  }

 private:
  void add_block(const KvGroups& groups, const HomeLayout& layout, std::span<const Piece> pieces);
  void merge_from(std::size_t first);

  std::vector<KeyNeed> needs_;
  std::vector<std::int64_t> first_;  // by block, and one past the last
};

}  // namespace libra
