#include "libra/attention/cudnn/pieces.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>

#include "libra/base/rng.h"

namespace libra::cudnn {
namespace {

using Pairs = std::multiset<std::tuple<std::int64_t, std::int64_t, std::int32_t, std::int32_t>>;

bool sees(const Entry& entry, std::int64_t query, std::int64_t key) {
  if (entry.mask == Mask::kTopLeftCausal) return key <= query;
  if (entry.mask == Mask::kBottomRightCausal) return key <= query + entry.keys - entry.queries;
  return true;
}

// Every (query row, key row, query head, KV head) of the entries, as attention.h defines the masks.
Pairs pairs_of(const std::vector<Entry>& entries) {
  Pairs result;
  for (const Entry& entry : entries) {
    for (std::int64_t query = 0; query < entry.queries; ++query) {
      for (std::int64_t key = 0; key < entry.keys; ++key) {
        if (!sees(entry, query, key)) continue;
        result.emplace(entry.q_row + query, entry.kv_row + key, entry.q_head, entry.kv_head);
      }
    }
  }
  return result;
}

AttentionCall tiny_call(Mask mask, std::int64_t queries, std::int64_t keys) {
  AttentionCall call;
  call.entries = {{7, queries, 3, keys, 2, 1, mask}};
  call.q_head_shift = 5;
  call.kv_head_shift = 6;
  return call;
}

template <typename Function>
void for_each_tiny_call(Function&& function) {
  for (const Mask mask : {Mask::kTopLeftCausal, Mask::kBottomRightCausal, Mask::kFull}) {
    for (std::int64_t queries = 0; queries < 7; ++queries) {
      for (std::int64_t keys = 0; keys < 7; ++keys) {
        SCOPED_TRACE(::testing::Message() << "mask " << static_cast<int>(mask) << ", " << queries
                                          << " queries, " << keys << " keys");
        AttentionCall call = tiny_call(mask, queries, keys);
        Entry expected = call.entries[0];
        expected.q_head += call.q_head_shift;
        expected.kv_head += call.kv_head_shift;
        function(call, pairs_of({expected}));
      }
    }
  }
}

TEST(Pieces, ForwardCoversEveryPairOnce) {
  for_each_tiny_call([](const AttentionCall& call, const Pairs& expected) {
    const ForwardPieces result = forward_pieces(call);
    EXPECT_EQ(pairs_of(result.pieces), expected);
    for (const Entry& piece : result.pieces) {
      EXPECT_NE(piece.mask, Mask::kTopLeftCausal);
      EXPECT_GT(piece.queries, 0);
      EXPECT_GT(piece.keys, 0);
      EXPECT_TRUE(piece.mask == Mask::kFull || piece.queries <= piece.keys);
      EXPECT_EQ(piece.kv_head, 7);
    }
  });
}

TEST(Pieces, RowsWithoutAKeyAreListedAndNoOthers) {
  for_each_tiny_call([](const AttentionCall& call, const Pairs& expected) {
    std::set<std::int64_t> seeing;
    for (const auto& pair : expected) seeing.insert(std::get<0>(pair));
    std::set<std::int64_t> keyless;
    for (const KeylessRows& run : forward_pieces(call).keyless) {
      EXPECT_EQ(run.head, 7);
      for (std::int64_t i = 0; i < run.rows; ++i) keyless.insert(run.row + i);
    }
    for (std::int64_t row = 7; row < 7 + call.entries[0].queries; ++row) {
      EXPECT_NE(seeing.count(row), keyless.count(row)) << row;
    }
    EXPECT_EQ(seeing.size() + keyless.size(), static_cast<std::size_t>(call.entries[0].queries));
  });
}

TEST(Pieces, BackwardCoversEveryPairOnceWithSquaresAndRectangles) {
  for_each_tiny_call([](const AttentionCall& call, const Pairs& expected) {
    const std::vector<Entry> pieces = backward_pieces(call);
    EXPECT_EQ(pairs_of(pieces), expected);
    for (const Entry& piece : pieces) {
      EXPECT_NE(piece.mask, Mask::kBottomRightCausal);
      EXPECT_TRUE(piece.mask == Mask::kFull || piece.queries == piece.keys);
    }
  });
}

// Samples in blocks of random lengths, some left out, in random order: whole, and each as a square
// and the rectangle before it.
struct Blocks {
  AttentionCall whole, split;
  std::size_t runs = 0;  // of neighbouring blocks of one sample
};

Blocks random_blocks(Rng& rng) {
  Blocks blocks;
  std::int64_t sample = 0;
  for (std::uint64_t s = 0; s < 1 + rng.below(3); ++s) {
    std::int64_t a = 0;
    bool runs = false;
    for (std::uint64_t b = 0; b < 1 + rng.below(5); ++b) {
      const auto rows = static_cast<std::int64_t>(1 + rng.below(6));
      const bool taken = rng.below(4) != 0;
      if (taken) {
        const std::int64_t q_row = sample + a;
        blocks.whole.entries.push_back(
            {q_row, rows, sample, a + rows, 0, 0, Mask::kBottomRightCausal});
        blocks.split.entries.push_back({q_row, rows, q_row, rows, 0, 0, Mask::kTopLeftCausal});
        if (a > 0) blocks.split.entries.push_back({q_row, rows, sample, a, 0, 0, Mask::kFull});
        if (!runs) ++blocks.runs;
      }
      runs = taken;
      a += rows;
    }
    sample += a;
  }
  for (AttentionCall* call : {&blocks.whole, &blocks.split}) {
    for (std::size_t i = call->entries.size(); i > 1; --i) {
      std::swap(call->entries[i - 1], call->entries[rng.below(i)]);
    }
  }
  return blocks;
}

TEST(Pieces, BackwardMakesOnePieceOfNeighbouringBlocks) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Blocks blocks = random_blocks(rng);
    const Pairs expected = pairs_of(blocks.whole.entries);
    for (const AttentionCall* call : {&blocks.whole, &blocks.split}) {
      const std::vector<Entry> pieces = backward_pieces(*call);
      EXPECT_EQ(pairs_of(pieces), expected);
      EXPECT_GE(pieces.size(), blocks.runs);
      EXPECT_LE(pieces.size(), 2 * blocks.runs);
    }
  }
}

// Entries whose rows touch in every way, few of which continue each other.
TEST(Pieces, BackwardKeepsThePairsOfAnyNeighbours) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    AttentionCall call;
    for (int i = 0; i < 5; ++i) {
      constexpr Mask kMasks[] = {Mask::kTopLeftCausal, Mask::kBottomRightCausal, Mask::kFull};
      const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
      call.entries.push_back({2 * below(3), 2 * below(3), 2 * below(3), 2 * below(4),
                              static_cast<std::int32_t>(below(2)),
                              static_cast<std::int32_t>(below(2)), kMasks[below(3)]});
    }
    EXPECT_EQ(pairs_of(backward_pieces(call)), pairs_of(call.entries));
  }
}

TEST(Pieces, HalvesCoverWhatTheWholeDid) {
  Rng rng(1);
  for (int i = 0; i < 40; ++i) {
    Entry piece{3,          2 + static_cast<std::int64_t>(rng.below(300)),
                5,          2 + static_cast<std::int64_t>(rng.below(300)),
                1,          0,
                Mask::kFull};
    if (rng.below(2) == 0) {
      piece.mask = Mask::kTopLeftCausal;
      piece.keys = piece.queries;
    }
    SCOPED_TRACE(::testing::Message() << "seed 1, turn " << i);
    const std::vector<Entry> parts = halves(piece);
    EXPECT_EQ(pairs_of(parts), pairs_of({piece}));
    for (const Entry& part : parts) EXPECT_LT(num_pairs(part), num_pairs(piece));
  }
}

TEST(Pieces, PairsAreCounted) {
  for_each_tiny_call([](const AttentionCall& call, const Pairs& expected) {
    std::int64_t forward = 0, backward = 0;
    for (const Entry& piece : forward_pieces(call).pieces) forward += num_pairs(piece);
    for (const Entry& piece : backward_pieces(call)) backward += num_pairs(piece);
    EXPECT_EQ(forward, static_cast<std::int64_t>(expected.size()));
    EXPECT_EQ(backward, static_cast<std::int64_t>(expected.size()));
  });
}

}  // namespace
}  // namespace libra::cudnn
