#include "libra/corpus/document_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace libra {
namespace {

std::vector<std::int64_t> all(DocumentOrder& order) {
  std::vector<std::int64_t> documents;
  while (!order.exhausted()) documents.push_back(order.next().index);
  return documents;
}

// Documents of 0, 1, 2, ... tokens.
std::vector<std::int64_t> counting(std::size_t documents) {
  std::vector<std::int64_t> lengths(documents);
  std::iota(lengths.begin(), lengths.end(), std::int64_t{0});
  return lengths;
}

TEST(DocumentOrder, VisitsEveryDocumentOnce) {
  const std::vector<std::int64_t> lengths = counting(1000);
  DocumentOrder order(lengths);
  order.restart(true, 5, 0);
  std::vector<std::int64_t> documents = all(order);
  EXPECT_FALSE(std::is_sorted(documents.begin(), documents.end()));
  std::sort(documents.begin(), documents.end());
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(documents[static_cast<std::size_t>(i)], i);
}

TEST(DocumentOrder, DependsOnSeedAndEpochAndNotOnWhatCameBefore) {
  const std::vector<std::int64_t> lengths = counting(100);
  DocumentOrder order(lengths);
  order.restart(true, 5, 1);
  const std::vector<std::int64_t> first = all(order);
  order.restart(true, 5, 2);
  EXPECT_NE(all(order), first);
  order.restart(true, 6, 1);
  order.next();
  order.restart(true, 5, 1);
  EXPECT_EQ(all(order), first);
}

// Around the number of documents that are drawn at once.
TEST(DocumentOrder, TellsTheTokensOfEachDocument) {
  for (const std::size_t documents : {1U, 63U, 64U, 65U, 128U, 200U}) {
    std::vector<std::int64_t> lengths = counting(documents);
    for (std::int64_t& tokens : lengths) tokens += 1000;
    DocumentOrder order(lengths);
    for (const bool shuffled : {false, true}) {
      order.restart(shuffled, 3, 1);
      std::size_t visited = 0;
      for (; !order.exhausted(); ++visited) {
        const DocumentOrder::Document document = order.next();
        ASSERT_EQ(document.tokens, document.index + 1000);
      }
      EXPECT_EQ(visited, documents);
    }
  }
}

TEST(DocumentOrder, UnshuffledIsFileOrder) {
  const std::vector<std::int64_t> lengths = counting(4);
  DocumentOrder order(lengths);
  order.restart(false, 5, 0);
  EXPECT_EQ(all(order), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(DocumentOrder, EveryPermutationIsEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> counts;
  const std::vector<std::int64_t> lengths = counting(4);
  DocumentOrder order(lengths);
  for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
    order.restart(true, seed, 0);
    ++counts[all(order)];
  }
  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [permutation, count] : counts) EXPECT_NEAR(count, 1000, 5 * 31);  // 5 sigma
}

}  // namespace
}  // namespace libra
