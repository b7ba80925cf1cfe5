#include "libra/plan/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "libra/base/error.h"
#include "libra/plan/pool_limits.h"

namespace libra {
namespace {

// Smaller tiles would not fill a kernel's blocks.
constexpr std::int64_t kLeastCutRows = 128;

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

// Cuts rows, met in (part, row) order, into blocks that begin at `first` and every `rows` from
// there on.
class BlockCutter {
 public:
  explicit BlockCutter(Tiling& tiling) : tiling_(tiling) {}

  void cut_every(std::int64_t rows, std::int64_t first) {
    rows_ = rows;
    first_ = first;
  }

  void add(std::int32_t part, const Piece& piece) {
    const TokenRange tokens = piece.queries;
    for (std::int64_t token = tokens.begin; token < tokens.end;) {
      const std::int64_t row = piece.row + token - tokens.begin;
      const std::int64_t block_row = first_ + (row - first_) / rows_ * rows_;
      const std::int64_t end = std::min(tokens.end, token + block_row + rows_ - row);
      open_block(part, block_row);
      add_piece({piece.sample, {token, end}, row});
      token = end;
    }
  }

 private:
  void open_block(std::int32_t part, std::int64_t row) {
    if (part == part_ && row == row_) return;
    part_ = part;
    row_ = row;
    const auto piece = static_cast<std::int32_t>(tiling_.pieces.size());
    tiling_.blocks.push_back({part, piece, piece, 0, 0});
  }

  void add_piece(const Piece& piece) {
    tiling_.pieces.push_back(piece);
    tiling_.blocks.back().end_piece = static_cast<std::int32_t>(tiling_.pieces.size());
    tiling_.blocks.back().tokens += piece.queries.size();
  }

  Tiling& tiling_;
  std::int64_t rows_ = 1;
  std::int64_t first_ = 0;
  std::int32_t part_ = -1;
  std::int64_t row_ = -1;  // at which the block begins
};

// Query-key pairs of the largest of the blocks that begin every `rows` from `first` on.
std::int64_t most_pairs(std::span<const Piece> pieces, std::int64_t first, std::int64_t rows) {
  Tiling blocks;
  BlockCutter cutter(blocks);
  cutter.cut_every(rows, first);
  for (const Piece& piece : pieces) cutter.add(0, piece);
  std::int64_t most = 0;
  for (const Block& block : blocks.blocks) {
    std::int64_t pairs = 0;
    for (const Piece& piece : blocks.pieces_of(block)) pairs += query_key_pairs(piece.queries);
    most = std::max(most, pairs);
  }
  return most;
}

// B, or what is left of it after as many halvings as it takes.
std::int64_t rows_under(const PlanOptions& options, std::span<const Piece> pieces,
                        std::int64_t first) {
  std::int64_t rows = options.block_tokens;
  while (rows > kLeastCutRows && most_pairs(pieces, first, rows) > options.max_tile_pairs) {
    rows = (rows + 1) / 2;
  }
  return rows;
}

// The same pieces in smaller blocks where a tile has more than the most pairs.
void cut_large_blocks(const PlanOptions& options, Tiling& tiling) {
  Tiling cut = tiling;
  cut.pieces.clear();
  cut.blocks.clear();
  BlockCutter cutter(cut);
  for (const Block& block : tiling.blocks) {
    const std::span<const Piece> pieces = tiling.pieces_of(block);
    const std::int64_t first = pieces.front().row / options.block_tokens * options.block_tokens;
    cutter.cut_every(rows_under(options, pieces, first), first);
    for (const Piece& piece : pieces) cutter.add(block.part, piece);
  }
  tiling = std::move(cut);
}

// Costs in any unit: a slow device's picoseconds may be more than a sum of loads can hold.
void add_costs(const PlanOptions& options, const PieceCost& cost, Tiling& tiling) {
  const std::int32_t heads = options.shape.q_heads / options.head_shards;
  std::int64_t left = kMaxTotalCost / options.head_shards;
  for (Block& block : tiling.blocks) {
    for (const Piece& piece : tiling.pieces_of(block)) {
      const std::int64_t of_piece = cost(piece.queries, heads);
      if (of_piece < 0 || of_piece > left) {
        throw ConfigError(
            fmt::format("the pool's tiles cost more than {} together: use shorter sequences, a "
                        "smaller pool, or costs of another unit",
                        kMaxTotalCost));
      }
      left -= of_piece;
      block.cost += of_piece;
    }
  }
}

}  // namespace

std::int64_t flops_cost(TokenRange queries, std::int32_t heads) {
  return query_key_pairs(queries) * heads;
}

PieceCost seconds_cost(std::shared_ptr<const DeviceProfile> device) {
  return [device = std::move(device)](TokenRange queries, std::int32_t heads) {
    if (queries.end > DeviceProfile::kMaxSampleTokens) {
      throw ConfigError(
          fmt::format("a sample of {} tokens is too long for costs in seconds: at "
                      "most {}",
                      queries.end, DeviceProfile::kMaxSampleTokens));
    }
    return device->forward_ps(queries, heads) + device->backward_ps(queries, heads);
  };
}

ComputeCost compute_cost(const std::shared_ptr<const DeviceProfile>& device) {
  return {seconds_cost(device), [device](std::int64_t bytes) { return device->add_ps(bytes); }};
}

Tiling make_tiling(const PlanOptions& options, const HomeLayout& layout, const PieceCost& cost) {
  Tiling tiling;
  tiling.head_shards = options.head_shards;
  tiling.shards_per_home = options.head_shards / options.tp;
  tiling.tp = options.tp;
  tiling.pieces.reserve(layout.fragments.size() * 2);
  BlockCutter cutter(tiling);
  cutter.cut_every(options.block_tokens, 0);
  for (const Fragment& fragment : fragments_by_row(layout)) {
    cutter.add(fragment.part, {fragment.sample, fragment.tokens, fragment.row});
  }
  if (options.max_tile_pairs > 0) cut_large_blocks(options, tiling);
  add_costs(options, cost, tiling);
  return tiling;
}

}  // namespace libra
