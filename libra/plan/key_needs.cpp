#include "libra/plan/key_needs.h"

#include <algorithm>

#include "libra/base/index.h"

namespace libra {

KeyNeeds::KeyNeeds(const KvGroups& groups, const HomeLayout& layout, const Tiling& tiling) {
  needs_.reserve(tiling.pieces.size());
  first_.reserve(tiling.blocks.size() + 1);
  first_.push_back(0);
  for (const Block& block : tiling.blocks) {
    add_block(groups, layout, tiling.pieces_of(block));
    first_.push_back(static_cast<std::int64_t>(needs_.size()));
  }
}

void KeyNeeds::add_block(const KvGroups& groups, const HomeLayout& layout,
                         std::span<const Piece> pieces) {
  const std::size_t first = needs_.size();
  bool in_order = true;
  for (const Piece& piece : pieces) {
    in_order = in_order && (needs_.size() == first || needs_.back().sample < piece.sample);
    needs_.push_back({piece.sample, groups.needed(piece),
                      piece.queries.size() == layout.samples[at(piece.sample)].tokens});
  }
  if (!in_order) merge_from(first);
}

void KeyNeeds::merge_from(std::size_t first) {
  const auto begin = needs_.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, needs_.end(), [](const KeyNeed& a, const KeyNeed& b) {
    return a.sample != b.sample ? a.sample < b.sample : a.tokens > b.tokens;
  });
  const auto same_sample = [](const KeyNeed& a, const KeyNeed& b) { return a.sample == b.sample; };
  needs_.erase(std::unique(begin, needs_.end(), same_sample), needs_.end());
}

}  // namespace libra
