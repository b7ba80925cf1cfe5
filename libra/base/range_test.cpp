#include "libra/base/range.h"

#include <gtest/gtest.h>

namespace libra {
namespace {

TEST(Range, IntersectionIsTheCommonPartOrEmpty) {
  EXPECT_EQ(intersect(TokenRange{0, 10}, TokenRange{5, 20}), (TokenRange{5, 10}));
  EXPECT_TRUE(intersect(TokenRange{0, 5}, TokenRange{5, 9}).empty());
  EXPECT_TRUE(intersect(TokenRange{0, 3}, TokenRange{7, 9}).empty());
}

TEST(Range, ContainsEveryEmptyRange) {
  EXPECT_TRUE((TokenRange{4, 6}).contains(TokenRange{9, 9}));
  EXPECT_TRUE((TokenRange{4, 6}).contains(TokenRange{5, 6}));
  EXPECT_FALSE((TokenRange{4, 6}).contains(TokenRange{5, 7}));
}

TEST(Range, SizeOfAnInvertedRangeIsZero) { EXPECT_EQ((HeadRange{5, 2}).size(), 0); }

}  // namespace
}  // namespace libra
