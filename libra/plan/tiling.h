// SH-Tiles: blocks of at most B rows of one token part, times the H head shards (the paper's
// section 4.3.1).
//
// A block is cut from a part's LOCAL order: it may span runs and samples, and has one home per head
// shard. What it computes are its pieces, each a stretch of queries of one sample against that
// sample's keys from 0 on:
//
//   rows of a part   | s0 | s1 |   s2    |  s2  |  s3  |pad|
//   blocks of B      |   block 0    |   block 1    | block 2 |
//   pieces           | 0  | 1  | 2  | 3  |  4   |  5 | 6 |
//
// Tile t is block t / H and head shard t % H. Blocks without a token of a sample are left out. With
// PlanOptions::max_tile_pairs, a block whose tiles are larger is cut into halves of its B rows,
// quarters and so on (down to 128 rows), as often as it takes; the others stay whole.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "libra/base/range.h"
#include "libra/cost/device_profile.h"
#include "libra/plan/head_split.h"
#include "libra/plan/home_layout.h"

namespace libra {

struct Piece {
  std::int32_t sample = 0;
  TokenRange queries;    ///< within the sample
  std::int64_t row = 0;  ///< of the first query, in the block's part
  friend bool operator==(const Piece&, const Piece&) = default;
};

struct Block {
  std::int32_t part = 0;
  std::int32_t first_piece = 0;  ///< pieces [first_piece, end_piece), in row order
  std::int32_t end_piece = 0;
  std::int64_t tokens = 0;  ///< queries in its pieces; padding is not among them
  std::int64_t cost = 0;    ///< of one tile: of one head shard of this block
  friend bool operator==(const Block&, const Block&) = default;
};

struct Tiling {
  std::int32_t head_shards = 1;      ///< H
  std::int32_t shards_per_home = 1;  ///< H / tp
  std::int32_t tp = 1;
  std::vector<Piece> pieces;
  std::vector<Block> blocks;  ///< part-major, in row order

  std::int32_t tiles() const { return static_cast<std::int32_t>(blocks.size()) * head_shards; }
  const Block& block_of(std::int32_t tile) const {
    return blocks[static_cast<std::size_t>(tile / head_shards)];
  }
  std::int32_t shard_of(std::int32_t tile) const { return tile % head_shards; }
  std::int32_t home_of(std::int32_t tile) const {
    return block_of(tile).part * tp + shard_of(tile) / shards_per_home;
  }
  std::span<const Piece> pieces_of(const Block& block) const {
    return std::span(pieces).subspan(static_cast<std::size_t>(block.first_piece),
                                     static_cast<std::size_t>(block.end_piece - block.first_piece));
  }
  friend bool operator==(const Tiling&, const Tiling&) = default;
};

/// Integer cost of one piece for `heads` query heads: pairs x heads (flops_cost), or picoseconds
/// from a device profile.
using PieceCost = std::function<std::int64_t(TokenRange queries, std::int32_t heads)>;

/// Query-key pairs times heads.
std::int64_t flops_cost(TokenRange queries, std::int32_t heads);

/// Picoseconds of one layer's forward and backward on this device. Throws ConfigError for samples
/// of more than DeviceProfile::kMaxSampleTokens.
PieceCost seconds_cost(std::shared_ptr<const DeviceProfile> device);

/// What a worker's computation costs, in picoseconds.
struct ComputeCost {
  PieceCost piece;                                            ///< as seconds_cost
  std::function<std::int64_t(std::int64_t bytes)> additions;  ///< of gradients (addition_bytes)
};

/// On this device.
ComputeCost compute_cost(const std::shared_ptr<const DeviceProfile>& device);

/// Throws ConfigError if costs are negative, or all tiles cost more than kMaxTotalCost together.
/// Linear in the number of fragments and blocks, plus a sort of the fragments by row.
Tiling make_tiling(const PlanOptions& options, const HomeLayout& layout,
                   const PieceCost& cost = flops_cost);

}  // namespace libra
