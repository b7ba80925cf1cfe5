#include "libra/cost/fixed_log.h"

#include <gtest/gtest.h>

#include <cmath>

#include "libra/base/rng.h"

namespace libra::fixed_log {
namespace {

constexpr double kUnit = 1.0 / (1 << kFractionBits);

TEST(FixedLog, IsExactAtPowersOfTwo) {
  for (int exponent = 0; exponent < 64; ++exponent) {
    EXPECT_EQ(log2_fixed(std::uint64_t{1} << exponent), std::int64_t{exponent} << kFractionBits);
  }
  EXPECT_EQ(exp2_fixed(0), std::uint64_t{1} << 31);
}

TEST(FixedLog, StaysWithinItsStatedErrorOfTheRealLogarithm) {
  Rng rng(1);
  for (int trial = 0; trial < 100000; ++trial) {
    const std::uint64_t x = 1 + (rng.next() >> rng.below(64));
    const double logarithm = std::log2(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(log2_fixed(x)) * kUnit, logarithm, 3e-7) << x;
  }
}

TEST(FixedLog, ExponentialStaysWithinItsStatedErrorOfTheRealOne) {
  for (std::uint64_t fraction = 0; fraction < (1U << kFractionBits); fraction += 97) {
    const double power = std::exp2(static_cast<double>(fraction) * kUnit);
    ASSERT_NEAR(static_cast<double>(exp2_fixed(fraction)) / 2147483648.0 / power, 1.0, 1e-7);
  }
}

TEST(FixedLog, NeverFalls) {
  for (std::uint64_t x = 1; x < 100000; ++x) ASSERT_LE(log2_fixed(x), log2_fixed(x + 1)) << x;
}

}  // namespace
}  // namespace libra::fixed_log
