#include "libra/plan/tiling.h"

#include <algorithm>
#include <utility>

namespace libra {
namespace {

// With contiguous homes token order is row order, and nothing needs sorting.
std::vector<Fragment> fragments_by_row(const HomeLayout& layout) {
  const auto earlier = [](const Fragment& a, const Fragment& b) {
    return a.part != b.part ? a.part < b.part : a.row < b.row;
  };
  std::vector<Fragment> sorted = layout.fragments;
  if (!std::is_sorted(sorted.begin(), sorted.end(), earlier)) {
    std::sort(sorted.begin(), sorted.end(), earlier);
  }
  return sorted;
}

// Cuts fragments, met in (part, row) order, at multiples of B rows.
class BlockCutter {
 public:
  BlockCutter(std::int64_t block_tokens, Tiling& tiling)
      : block_tokens_(block_tokens), tiling_(tiling) {}

  void add(const Fragment& fragment) {
    for (std::int64_t token = fragment.tokens.begin; token < fragment.tokens.end;) {
      const std::int64_t row = fragment.row + token - fragment.tokens.begin;
      open_block(fragment.part, row / block_tokens_);
      const std::int64_t rows_left = (row / block_tokens_ + 1) * block_tokens_ - row;
      const std::int64_t end = std::min(fragment.tokens.end, token + rows_left);
      add_piece({fragment.sample, {token, end}, row});
      token = end;
    }
  }

 private:
  void open_block(std::int32_t part, std::int64_t index) {
    if (part == part_ && index == index_) return;
    part_ = part;
    index_ = index;
    const auto piece = static_cast<std::int32_t>(tiling_.pieces.size());
    tiling_.blocks.push_back({part, piece, piece, 0, 0});
  }

  void add_piece(const Piece& piece) {
    tiling_.pieces.push_back(piece);
    tiling_.blocks.back().end_piece = static_cast<std::int32_t>(tiling_.pieces.size());
    tiling_.blocks.back().tokens += piece.queries.size();
  }

  std::int64_t block_tokens_;
  Tiling& tiling_;
  std::int32_t part_ = -1;
  std::int64_t index_ = -1;
};

}  // namespace

std::int64_t flops_cost(TokenRange queries, std::int32_t heads) {
  return query_key_pairs(queries) * heads;
}

PieceCost seconds_cost(std::shared_ptr<const DeviceProfile> device) {
  return [device = std::move(device)](TokenRange queries, std::int32_t heads) {
    return device->forward_ps(queries, heads) + device->backward_ps(queries, heads);
  };
}

Tiling make_tiling(const PlanOptions& options, const HomeLayout& layout, const PieceCost& cost) {
  Tiling tiling;
  tiling.head_shards = options.head_shards;
  tiling.shards_per_home = options.head_shards / options.tp;
  tiling.tp = options.tp;
  tiling.pieces.reserve(layout.fragments.size() * 2);
  BlockCutter cutter(options.block_tokens, tiling);
  for (const Fragment& fragment : fragments_by_row(layout)) cutter.add(fragment);
  const std::int32_t heads = options.shape.q_heads / options.head_shards;
  for (Block& block : tiling.blocks) {
    for (const Piece& piece : tiling.pieces_of(block)) block.cost += cost(piece.queries, heads);
  }
  return tiling;
}

}  // namespace libra
