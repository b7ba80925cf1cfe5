#include "libra/corpus/document_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace libra {
namespace {

std::vector<std::int64_t> all(DocumentOrder& order) {
  std::vector<std::int64_t> documents;
  while (!order.exhausted()) documents.push_back(order.next());
  return documents;
}

TEST(DocumentOrder, VisitsEveryDocumentOnce) {
  DocumentOrder order(1000);
  order.restart(true, 5, 0);
  std::vector<std::int64_t> documents = all(order);
  EXPECT_FALSE(std::is_sorted(documents.begin(), documents.end()));
  std::sort(documents.begin(), documents.end());
  for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(documents[static_cast<std::size_t>(i)], i);
}

TEST(DocumentOrder, DependsOnSeedAndEpochAndNotOnWhatCameBefore) {
  DocumentOrder order(100);
  order.restart(true, 5, 1);
  const std::vector<std::int64_t> first = all(order);
  order.restart(true, 5, 2);
  EXPECT_NE(all(order), first);
  order.restart(true, 6, 1);
  order.next();
  order.restart(true, 5, 1);
  EXPECT_EQ(all(order), first);
}

TEST(DocumentOrder, UnshuffledIsFileOrder) {
  DocumentOrder order(4);
  order.restart(false, 5, 0);
  EXPECT_EQ(all(order), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(DocumentOrder, EveryPermutationIsEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> counts;
  DocumentOrder order(4);
  for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
    order.restart(true, seed, 0);
    ++counts[all(order)];
  }
  EXPECT_EQ(counts.size(), 24U);
  for (const auto& [permutation, count] : counts) EXPECT_NEAR(count, 1000, 5 * 31);  // 5 sigma
}

}  // namespace
}  // namespace libra
