#include "libra/base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace libra {
namespace {

TEST(Rng, SeedAndStreamBothSelectTheSequence) {
  EXPECT_EQ(Rng(1, 2).next(), Rng(1, 2).next());
  EXPECT_NE(Rng(1, 2).next(), Rng(2, 2).next());
  EXPECT_NE(Rng(1, 2).next(), Rng(1, 3).next());
}

TEST(Rng, UniformHasTheMomentsOfTheUnitInterval) {
  Rng rng(7);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.004);  // five standard errors
  EXPECT_NEAR(squares / kDraws, 1.0 / 3.0, 0.004);
}

TEST(Rng, NormalHasMeanZeroAndVarianceOne) {
  Rng rng(11);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double z = rng.normal();
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.012);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.016);
}

TEST(Rng, BelowReachesEveryValueEquallyOften) {
  Rng rng(13);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[rng.below(7)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Rng, ShuffleKeepsEveryItem) {
  std::vector<int> items(1000);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  Rng(3).shuffle(shuffled);
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

}  // namespace
}  // namespace libra
