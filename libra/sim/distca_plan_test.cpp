#include "libra/sim/distca_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "libra/base/index.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/random_plans.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::sequence;

std::map<std::int32_t, std::int64_t> load(const std::vector<DistcaItem>& items) {
  std::map<std::int32_t, std::int64_t> pairs;
  for (const DistcaItem& item : items) pairs[item.worker] += item.pairs();
  return pairs;
}

TEST(DistcaItem, TakesRowsInTurnFromBeginningAndEnd) {
  const DistcaItem item{0, 0, 0, 9, {2, 6}};  // rows 1, 7, 2, 6
  EXPECT_EQ(item.head(), (TokenRange{1, 3}));
  EXPECT_EQ(item.tail(), (TokenRange{6, 8}));
  EXPECT_EQ(item.pairs(), 2 + 3 + 7 + 8);
}

TEST(DistcaItem, RowPairsOfADocumentCostTheSame) {
  for (std::int64_t begin = 0; begin < 8; begin += 2) {
    EXPECT_EQ((DistcaItem{0, 0, 0, 9, {begin, begin + 2}}.pairs()), 10);
  }
}

// One document over two ranks: head and tail give each half of its 36 pairs.
TEST(DistcaPlan, CutsADocumentThatCrossesRanksHeadAndTail) {
  const std::vector<PackedSequence> sequences = {sequence({8})};
  EXPECT_THAT(load(distca_plan(sequences, {2, 0.1, 1, 1})),
              ::testing::ElementsAre(std::pair(0, 18), std::pair(1, 18)));
}

// Worker 0 has 36 pairs, worker 1 has 8: the mean is 22. It needs 14, one row pair of 9 is moved;
// the 5 that are left are less than another.
TEST(DistcaPlan, MovesWholeRowPairsToTheNeedy) {
  const std::vector<PackedSequence> sequences = {sequence({8}), sequence({1, 1, 1, 1, 1, 1, 1, 1})};
  const std::vector<DistcaItem> items = distca_plan(sequences, {1, 0, 1, 1});
  EXPECT_THAT(load(items), ::testing::ElementsAre(std::pair(0, 27), std::pair(1, 17)));
  EXPECT_EQ(items.back().worker, 1);
  EXPECT_EQ(items.back().home, 0);
  EXPECT_EQ(items.back().positions, (TokenRange{6, 8}));
}

TEST(DistcaPlan, StopsWithinTheTolerance) {
  const std::vector<PackedSequence> sequences = {sequence({8}), sequence({1, 1, 1, 1, 1, 1, 1, 1})};
  EXPECT_EQ(load(distca_plan(sequences, {1, 0.7, 1, 1}))[1], 8);  // 14 of 22 missing: good enough
}

// The KV of the whole document is charged, so the long one is the cheaper donor per pair.
TEST(DistcaPlan, PrefersTheDocumentThatMovesLeastPerPair) {
  const std::vector<PackedSequence> sequences = {sequence({16, 4, 4, 4, 4}, 32), sequence({1}, 32)};
  for (const DistcaItem& item : distca_plan(sequences, {1, 0.3, 1, 1})) {
    if (item.worker != item.home) {
      EXPECT_EQ(item.tokens, 16);
    }
  }
}

// 156 and 120 pairs: 18 are missing. One row pair of {16} gives 17 pairs for two rows of Q and
// twice 16 of K and V; all of {4} gives 10 for four of Q and twice 4, which is less for each if
// keys and values are heavy.
TEST(DistcaPlan, ChargesTheKeysOfTheWholeDocument) {
  const std::vector<PackedSequence> sequences = {sequence({16, 4, 4}, 32), sequence({15}, 32)};
  std::int32_t moved = 0;
  for (const DistcaItem& item : distca_plan(sequences, {1, 0, 1, 10})) {
    if (item.worker == item.home) continue;
    EXPECT_EQ(item.tokens, 4);
    ++moved;
  }
  EXPECT_EQ(moved, 2);
  EXPECT_EQ(distca_plan(sequences, {1, 0, 10, 0}).back().tokens, 16);
}

TEST(DistcaPlan, ComputesEveryRowOfEveryDocumentOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    std::vector<PackedSequence> sequences;
    std::int64_t pairs = 0;
    for (int i = 0; i < 4; ++i) {
      sequences.push_back(testing::random_sequence(rng, 150));
      pairs += sequence_cost(sequences.back());
    }
    std::map<std::int32_t, std::int64_t> positions;
    std::map<std::int32_t, std::int64_t> tokens;
    std::int64_t computed = 0;
    for (const DistcaItem& item : distca_plan(sequences, {3, 0.01, 2, 1})) {
      positions[item.document] += item.positions.size();
      tokens[item.document] = item.tokens;
      computed += item.pairs();
    }
    EXPECT_EQ(positions, tokens);
    EXPECT_EQ(computed, pairs);
  }
}

}  // namespace
}  // namespace libra
