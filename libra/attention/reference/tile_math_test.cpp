#include "libra/attention/reference/tile_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "libra/base/rng.h"

namespace libra::reference {
namespace {

template <typename Acc>
class TileMathTest : public ::testing::Test {
 protected:
  /// exp(x), through the only function that exposes it: exp(score - lse) with lse 0.
  Acc exp(double x) {
    Tile<Acc> scores(1, 1);
    Tile<Acc> d_p(1, 1);
    Tile<Acc> zero(1, 1);
    scores.row(0)[0] = static_cast<Acc>(x);
    tile_math<Acc>().score_gradient({&scores, &d_p, 1, 1, zero.row(0), zero.row(0)});
    return scores.row(0)[0];
  }
};

using Accs = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TileMathTest, Accs);

TYPED_TEST(TileMathTest, ExpIsWithinTwoStepsOfTheTruth) {
  const double step = static_cast<double>(std::numeric_limits<TypeParam>::epsilon());
  const double lowest = sizeof(TypeParam) == 4 ? -87.0 : -708.0;
  for (int i = 0; i <= 20'000; ++i) {
    const auto x = static_cast<TypeParam>(lowest * i / 20'000);
    const double truth = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(this->exp(static_cast<double>(x))), truth, 2 * step * truth)
        << x;
  }
}

TYPED_TEST(TileMathTest, ExpOfSpecialValues) {
  EXPECT_EQ(this->exp(0.0), TypeParam{1});
  EXPECT_EQ(this->exp(-std::numeric_limits<double>::infinity()), TypeParam{0});
  EXPECT_EQ(this->exp(-1e30), TypeParam{0});
  EXPECT_TRUE(std::isnan(this->exp(std::nan(""))));
  EXPECT_GT(this->exp(1e30), std::numeric_limits<TypeParam>::max() / 16) << "huge, not wrapped";
}

// Small integers, so that every sum of products is exact.
template <typename Acc>
Tile<Acc> random_integers(std::int64_t rows, std::int64_t columns, Rng& rng) {
  Tile<Acc> tile(rows, columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      tile.row(i)[j] = static_cast<Acc>(static_cast<int>(rng.below(17)) - 8);
    }
  }
  return tile;
}

// c += transposed(a) * b, one sum after the other.
template <typename Acc>
void expect_product(std::int64_t m, std::int64_t k, std::int64_t n, Rng& rng) {
  const Tile<Acc> a = random_integers<Acc>(k, m, rng);
  const Tile<Acc> b = random_integers<Acc>(k, n, rng);
  const Tile<Acc> before = random_integers<Acc>(m, n, rng);
  Tile<Acc> c = before;
  tile_math<Acc>().multiply_add({a.row(0), 1, a.stride(), &b, &c, m, k, n});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Acc expected = before.row(i)[j];
      for (std::int64_t x = 0; x < k; ++x) expected += a.row(x)[i] * b.row(x)[j];
      ASSERT_EQ(c.row(i)[j], expected) << m << 'x' << k << 'x' << n;
    }
  }
}

TYPED_TEST(TileMathTest, ProductsOfEverySizeMatchTheDefinition) {
  Rng rng(1);
  for (std::int64_t m = 0; m <= 19; ++m) {
    for (const std::int64_t n : {1, 8, 15, 16, 17, 33, 64}) {
      expect_product<TypeParam>(m, 1 + static_cast<std::int64_t>(rng.below(9)), n, rng);
    }
  }
}

}  // namespace
}  // namespace libra::reference
