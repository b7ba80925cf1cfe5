#include "libra/attention/cudnn/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "libra/attention/cudnn/pieces.h"
#include "libra/base/rng.h"

namespace libra::cudnn {
namespace {

BatchRules rules_of(std::int64_t max_bytes) {
  BatchRules rules;
  rules.query_row_bytes = 4000;
  rules.key_row_bytes = 5000;
  rules.max_bytes = max_bytes;
  rules.q_heads = 4;
  rules.kv_heads = 1;
  return rules;
}

std::vector<Entry> random_pieces(Rng& rng) {
  std::vector<Entry> pieces;
  std::int64_t row = 0;
  const std::uint64_t count = 1 + rng.below(50);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto rows = static_cast<std::int64_t>(1 + rng.below(rng.below(10) == 0 ? 60'000 : 2000));
    Entry piece{row, rows, row, rows, 0, 0, Mask::kTopLeftCausal};
    if (rng.below(2) == 0) {
      piece.mask = Mask::kFull;
      piece.keys = static_cast<std::int64_t>(1 + rng.below(100'000));
    }
    pieces.push_back(piece);
    row += rows;
  }
  return pieces;
}

void repeat_for_other_heads(std::vector<Entry>& pieces) {
  const std::vector<Entry> once = pieces;
  for (Entry piece : once) {
    piece.q_head += 4;
    piece.kv_head += 1;
    pieces.push_back(piece);
  }
}

bool holds(const BatchShape& bucket, const std::vector<Entry>& pieces) {
  BatchShape sum;
  for (const Entry& piece : pieces) {
    ++sum.entries;
    sum.total_queries += piece.queries;
    sum.total_keys += piece.keys;
    if (piece.queries > bucket.max_queries || piece.keys > bucket.max_keys) return false;
  }
  return sum.entries <= bucket.entries && sum.total_queries <= bucket.total_queries &&
         sum.total_keys <= bucket.total_keys;
}

std::int64_t pairs_in(const std::vector<Batch>& batches) {
  std::int64_t pairs = 0;
  for (const Batch& batch : batches) {
    for (const Entry& piece : batch.pieces) pairs += num_pairs(piece);
  }
  return pairs;
}

TEST(Batches, HoldTheirPiecesWithinTheMemoryAndLoseNone) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<Entry> pieces = random_pieces(rng);
    BatchRules rules = rules_of(std::int64_t{1} << (22 + rng.below(10)));
    if (rng.below(2) == 0) rules.pair_bytes = 1;
    rules.by_rows = rng.below(2) == 0;
    if (rng.below(2) == 0) repeat_for_other_heads(pieces);
    const std::vector<Batch> batches = make_batches(pieces, rules);
    for (const Batch& batch : batches) {
      EXPECT_TRUE(holds(batch.bucket, batch.pieces));
      EXPECT_LE(scratch_bytes(batch.bucket, rules), rules.max_bytes);
    }
    std::int64_t expected = 0;
    for (const Entry& piece : pieces) expected += num_pairs(piece);
    EXPECT_EQ(pairs_in(batches), expected);
  }
}

TEST(Batches, HaveOneMaskAndTheLongestPiecesFirst) {
  Rng rng(7);
  std::set<Mask> met;
  Mask last = Mask::kFull;
  for (const Batch& batch : make_batches(random_pieces(rng), rules_of(std::int64_t{1} << 31))) {
    const bool begins = met.empty() || batch.mask != last;
    EXPECT_EQ(begins, met.insert(batch.mask).second) << "a mask came back";
    last = batch.mask;
    std::int64_t longest = num_pairs(batch.pieces.front());
    for (const Entry& piece : batch.pieces) {
      EXPECT_EQ(piece.mask, batch.mask);
      EXPECT_LE(num_pairs(piece), longest);
      longest = num_pairs(piece);
    }
  }
}

TEST(Batches, ByRowsTakeNeighbours) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::vector<Entry> pieces = random_pieces(rng);
    BatchRules rules = rules_of(std::int64_t{1} << (26 + rng.below(5)));
    rules.by_rows = true;
    Mask mask = Mask::kTopLeftCausal;
    std::int64_t end = 0;  // of the rows so far
    std::int64_t pairs = 0;
    for (const Batch& batch : make_batches(pieces, rules)) {
      if (batch.mask != mask) end = 0;
      mask = batch.mask;
      std::int64_t batch_end = end, longest = num_pairs(batch.pieces.front());
      for (const Entry& piece : batch.pieces) {
        EXPECT_GE(piece.q_row, end);
        EXPECT_LE(num_pairs(piece), std::exchange(longest, num_pairs(piece)));
        batch_end = std::max(batch_end, piece.q_row);
        pairs += num_pairs(piece);
      }
      end = batch_end;
    }
    std::int64_t expected = 0;
    for (const Entry& piece : pieces) expected += num_pairs(piece);
    EXPECT_EQ(pairs, expected);
  }
}

TEST(Batches, ByRowsLeaveLittleRoomForEntriesThatAreNotThere) {
  BatchRules rules = rules_of(std::int64_t{400} << 20);  // 46,592 rows
  rules.by_rows = true;
  std::vector<Entry> pieces;
  for (std::int64_t i = 0; i < 400; ++i) {
    pieces.push_back({i * 644, 644, i * 644, 644, 0, 0, Mask::kTopLeftCausal});
  }
  for (const Batch& batch : make_batches(pieces, rules)) {
    EXPECT_LE(batch.bucket.entries, 64);
    const bool last = batch.pieces.front().q_row >= 384 * 644;
    EXPECT_EQ(std::ssize(batch.pieces), last ? 16 : 64);
  }
}

TEST(Batches, PiecesOfPartlySharedHeadsAreApart) {
  std::vector<Entry> pieces;
  for (const std::int32_t head : {0, 4, 2, 0, 6, 8}) {
    pieces.push_back({0, 10, 0, 10, head, head, Mask::kFull});
  }
  for (const Batch& batch : make_batches(pieces, rules_of(std::int64_t{1} << 31))) {
    for (const Entry& a : batch.pieces) {
      for (const Entry& b : batch.pieces) {
        EXPECT_TRUE(a.q_head == b.q_head || std::abs(a.q_head - b.q_head) >= 4);
      }
    }
  }
}

TEST(Batches, ManyEntriesAreCutAtTheMost) {
  const std::vector<Entry> pieces(5000, {0, 1, 0, 1, 0, 0, Mask::kFull});
  const std::vector<Batch> batches = make_batches(pieces, BatchRules{});
  ASSERT_EQ(batches.size(), 3U);
  EXPECT_EQ(batches[0].pieces.size(), static_cast<std::size_t>(kMaxEntries));
}

TEST(Buckets, AreFew) {
  Rng rng(3);
  const BatchRules rules = rules_of(std::int64_t{4} << 30);
  std::map<std::vector<std::int64_t>, int> met;
  for (int i = 0; i < 2000; ++i) {
    for (const Batch& batch : make_batches(random_pieces(rng), rules)) {
      const BatchShape& b = batch.bucket;
      ++met[{b.entries, b.max_queries, b.max_keys, b.total_queries, b.total_keys}];
    }
  }
  EXPECT_LE(met.size(), 60U);
}

TEST(Buckets, AllOfThemAreListed) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    BatchRules rules = rules_of(std::int64_t{4} << 30);
    rules.by_rows = seed % 2 == 0;
    const std::vector<BatchShape> all = all_buckets(100'000, rules);
    Rng rng(seed);
    for (const Batch& batch : make_batches(random_pieces(rng), rules)) {
      EXPECT_NE(std::find(all.begin(), all.end(), batch.bucket), all.end());
    }
  }
}

}  // namespace
}  // namespace libra::cudnn
