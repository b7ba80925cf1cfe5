#include "libra/attention/reference/mask.h"

#include <gtest/gtest.h>

#include <vector>

namespace libra::reference {
namespace {

std::vector<std::int64_t> prefixes(Mask mask, std::int64_t queries, std::int64_t keys) {
  const Entry entry{0, queries, 0, keys, 0, 0, mask};
  std::vector<std::int64_t> result;
  for (std::int64_t query = 0; query < queries; ++query) {
    result.push_back(visible_keys(entry, query));
  }
  return result;
}

using Prefixes = std::vector<std::int64_t>;

TEST(Mask, TopLeftStartsWithOneKey) {
  EXPECT_EQ(prefixes(Mask::kTopLeftCausal, 3, 3), (Prefixes{1, 2, 3}));
  EXPECT_EQ(prefixes(Mask::kTopLeftCausal, 2, 4), (Prefixes{1, 2}));
  EXPECT_EQ(prefixes(Mask::kTopLeftCausal, 4, 2), (Prefixes{1, 2, 2, 2}));
}

TEST(Mask, BottomRightEndsWithAllKeys) {
  EXPECT_EQ(prefixes(Mask::kBottomRightCausal, 3, 3), (Prefixes{1, 2, 3}));
  EXPECT_EQ(prefixes(Mask::kBottomRightCausal, 2, 4), (Prefixes{3, 4}));
}

TEST(Mask, BottomRightLeavesTheFirstQueriesWithoutKeysWhenThereAreMoreQueries) {
  EXPECT_EQ(prefixes(Mask::kBottomRightCausal, 4, 2), (Prefixes{0, 0, 1, 2}));
}

TEST(Mask, FullShowsEverything) {
  EXPECT_EQ(prefixes(Mask::kFull, 2, 3), (Prefixes{3, 3}));
  EXPECT_EQ(prefixes(Mask::kFull, 2, 0), (Prefixes{0, 0}));
}

TEST(Mask, FirstQuerySeeingAKeyInvertsVisibleKeys) {
  for (const Mask mask : {Mask::kTopLeftCausal, Mask::kBottomRightCausal, Mask::kFull}) {
    for (std::int64_t queries = 0; queries < 6; ++queries) {
      for (std::int64_t keys = 0; keys < 6; ++keys) {
        const Entry entry{0, queries, 0, keys, 0, 0, mask};
        for (std::int64_t query = 0; query < queries; ++query) {
          for (std::int64_t key = 0; key < keys; ++key) {
            EXPECT_EQ(key < visible_keys(entry, query), query >= first_query_seeing(entry, key))
                << static_cast<int>(mask) << ' ' << queries << 'x' << keys;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace libra::reference
