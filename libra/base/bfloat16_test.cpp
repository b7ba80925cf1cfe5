#include "libra/base/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace libra {
namespace {

float through(float value) { return static_cast<float>(Bf16(value)); }

TEST(Bf16, KeepsWhatEightBitsOfMantissaCanHold) {
  for (const float exact : {0.0F, -0.0F, 1.0F, -2.5F, 1.0F + 1.0F / 128})
    EXPECT_EQ(through(exact), exact);
}

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(through(1.0F + 1.0F / 256), 1.0F);               // a tie: down to the even neighbour
  EXPECT_EQ(through(1.0F + 3.0F / 256), 1.0F + 2.0F / 128);  // a tie: up to the even neighbour
  EXPECT_EQ(through(1.0F + 1.1F / 256), 1.0F + 1.0F / 128);  // past the tie
}

TEST(Bf16, KeepsInfinitiesAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(through(kInf), kInf);
  EXPECT_EQ(through(-kInf), -kInf);
  EXPECT_TRUE(std::isnan(through(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace libra
