#include "libra/plan/tiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "libra/base/index.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::ElementsAre;

// Rows of each part, as (sample, token); padding is {-1, 0}.
std::vector<std::vector<std::pair<std::int32_t, std::int64_t>>> labelled_rows(
    const HomeLayout& layout) {
  std::vector<std::vector<std::pair<std::int32_t, std::int64_t>>> rows;
  for (const TokenPart& part : layout.parts) rows.emplace_back(at(part.rows), std::pair(-1, 0));
  for (const Fragment& fragment : layout.fragments) {
    for (std::int64_t t = fragment.tokens.begin; t < fragment.tokens.end; ++t)
      rows[at(fragment.part)][at(fragment.row + t - fragment.tokens.begin)] = {fragment.sample, t};
  }
  return rows;
}

void expect_queries_at_their_rows(const HomeLayout& layout, const Tiling& tiling) {
  const auto rows = labelled_rows(layout);
  for (const Block& block : tiling.blocks) {
    for (const Piece& piece : tiling.pieces_of(block)) {
      ASSERT_FALSE(piece.queries.empty());
      for (std::int64_t t = piece.queries.begin; t < piece.queries.end; ++t) {
        ASSERT_EQ(rows[at(block.part)][at(piece.row + t - piece.queries.begin)],
                  std::pair(piece.sample, t));
      }
    }
  }
}

void expect_each_token_and_head_once(const PlanOptions& options, const HomeLayout& layout,
                                     const Tiling& tiling) {
  std::map<std::tuple<std::int32_t, std::int64_t, std::int32_t>, int> computed;
  const std::int32_t heads = options.shape.q_heads / options.head_shards;
  for (std::int32_t tile = 0; tile < tiling.tiles(); ++tile) {
    for (const Piece& piece : tiling.pieces_of(tiling.block_of(tile))) {
      for (std::int64_t t = piece.queries.begin; t < piece.queries.end; ++t) {
        for (std::int32_t head = 0; head < heads; ++head)
          ++computed[{piece.sample, t, tiling.shard_of(tile) * heads + head}];
      }
    }
  }
  std::size_t expected = 0;
  for (const PoolSample& sample : layout.samples)
    expected += at(sample.tokens) * at(options.shape.q_heads);
  ASSERT_EQ(computed.size(), expected);
  for (const auto& [where, times] : computed) ASSERT_EQ(times, 1);
}

void expect_blocks_in_local_order(const PlanOptions& options, const Tiling& tiling) {
  const Block* last = nullptr;
  std::int64_t last_row = -1;
  for (const Block& block : tiling.blocks) {
    const bool same_part = last != nullptr && last->part == block.part;
    ASSERT_TRUE(last == nullptr || last->part <= block.part);
    if (!same_part) last_row = -1;
    const auto pieces = tiling.pieces_of(block);
    ASSERT_FALSE(pieces.empty());
    const std::int64_t index = pieces.front().row / options.block_tokens;
    ASSERT_TRUE(!same_part || last_row / options.block_tokens < index) << "one block a stretch";
    std::int64_t tokens = 0;
    for (const Piece& piece : pieces) {
      ASSERT_GT(piece.row, last_row);
      last_row = piece.row + piece.queries.size() - 1;
      ASSERT_EQ(last_row / options.block_tokens, index);
      tokens += piece.queries.size();
    }
    ASSERT_EQ(block.tokens, tokens);
    ASSERT_LE(tokens, options.block_tokens);
    last = &block;
  }
}

void expect_costs_pair_by_pair(const PlanOptions& options, const Tiling& tiling) {
  for (const Block& block : tiling.blocks) {
    std::int64_t pairs = 0;
    for (const Piece& piece : tiling.pieces_of(block)) {
      for (std::int64_t query = piece.queries.begin; query < piece.queries.end; ++query)
        pairs += query + 1;
    }
    ASSERT_EQ(block.cost, pairs * (options.shape.q_heads / options.head_shards));
  }
}

TEST(Tiling, ComputesEveryQueryTokenAndHeadOnceInBlocksOfLocalOrder) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    const HomeLayout layout = make_home_layout(options, sequences);
    const Tiling tiling = make_tiling(options, layout);
    expect_queries_at_their_rows(layout, tiling);
    expect_each_token_and_head_once(options, layout, tiling);
    expect_blocks_in_local_order(options, tiling);
    expect_costs_pair_by_pair(options, tiling);
    if (HasFatalFailure()) return;
  }
}

TEST(Tiling, HomeOfATileHoldsItsTokensAndItsHeads) {
  PlanOptions options;
  options.cp = 4;
  options.tp = 2;
  options.head_shards = 4;
  options.block_tokens = 5;
  const HomeLayout layout =
      make_home_layout(options, std::vector<PackedSequence>{{20, {20}}, {20, {20}}});
  const Tiling tiling = make_tiling(options, layout);
  ASSERT_EQ(tiling.blocks.size(), 8U);
  // Part 0's blocks 0 and 1: shards 0 and 1 at worker 0, shards 2 and 3 at worker 1.
  for (std::int32_t tile = 0; tile < tiling.tiles(); ++tile) {
    const std::int32_t part = tiling.block_of(tile).part;
    EXPECT_EQ(tiling.home_of(tile), part * 2 + (tiling.shard_of(tile) < 2 ? 0 : 1));
  }
}

TEST(Tiling, OfTheHeaderExample) {
  PlanOptions options;
  options.block_tokens = 12;
  const HomeLayout layout =
      make_home_layout(options, std::vector<PackedSequence>{{30, {4, 4, 9, 7, 2}}});
  const Tiling tiling = make_tiling(options, layout);
  std::vector<std::int32_t> pieces;
  for (const Block& block : tiling.blocks) pieces.push_back(block.end_piece - block.first_piece);
  EXPECT_THAT(pieces, ElementsAre(3, 2, 1));
  EXPECT_EQ(tiling.pieces[3], (Piece{2, {4, 9}, 12}));
}

TEST(Tiling, IsThePapersGridWithContiguousHomes) {
  PlanOptions options;
  options.cp = 8;
  options.head_shards = 4;
  options.block_tokens = 8192;
  const HomeLayout layout =
      make_home_layout(options, std::vector<PackedSequence>{{262'144, {100'000, 162'144}}});
  EXPECT_EQ(make_tiling(options, layout).tiles(), 128);
}

TEST(Tiling, LeavesPaddingOut) {
  PlanOptions options;
  options.block_tokens = 10;
  const HomeLayout layout =
      make_home_layout(options, std::vector<PackedSequence>{{10'000, {3, 0, 4}}});
  const Tiling tiling = make_tiling(options, layout);
  ASSERT_EQ(tiling.blocks.size(), 1U);
  EXPECT_EQ(tiling.blocks[0].tokens, 7);
  EXPECT_EQ(tiling.pieces.size(), 2U);
}

TEST(Tiling, CostsAreTheSumOfWhatTheCostFunctionSaysOfEachPiece) {
  PlanOptions options;
  options.block_tokens = 8;
  const HomeLayout layout = make_home_layout(options, std::vector<PackedSequence>{{12, {5, 7}}});
  const Tiling tiling = make_tiling(options, layout, [](TokenRange queries, std::int32_t heads) {
    return queries.begin * 1'000'000 + queries.end * 1'000 + heads;
  });
  ASSERT_EQ(tiling.blocks.size(), 2U);
  EXPECT_EQ(tiling.blocks[0].cost, 5'016 + 3'016);
  EXPECT_EQ(tiling.blocks[1].cost, 3'007'016);
}

}  // namespace
}  // namespace libra
