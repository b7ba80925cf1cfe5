#include "libra/base/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace libra {
namespace {

Fp16 from_bits(std::uint16_t bits) { return std::bit_cast<Fp16>(bits); }
std::uint16_t bits_of(Fp16 value) { return std::bit_cast<std::uint16_t>(value); }

TEST(Fp16, EveryNumberSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Fp16 value = from_bits(static_cast<std::uint16_t>(bits));
    const auto number = static_cast<float>(value);
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Fp16(number)))) << bits;
    } else {
      EXPECT_EQ(bits_of(Fp16(number)), bits);
    }
  }
}

TEST(Fp16, NumbersInBetweenGoToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const auto below =
        static_cast<double>(static_cast<float>(from_bits(static_cast<std::uint16_t>(bits))));
    const auto above =
        static_cast<double>(static_cast<float>(from_bits(static_cast<std::uint16_t>(bits + 1))));
    const auto at = [&](double share) {
      return bits_of(Fp16(static_cast<float>(below + share * (above - below))));
    };
    EXPECT_EQ(at(0.25), bits);
    EXPECT_EQ(at(0.75), bits + 1);
    EXPECT_EQ(at(0.5), bits + (bits & 1U));
  }
}

TEST(Fp16, KnownNumbers) {
  EXPECT_EQ(bits_of(Fp16(1.0F)), 0x3C00);
  EXPECT_EQ(bits_of(Fp16(-2.0F)), 0xC000);
  EXPECT_EQ(bits_of(Fp16(65504.0F)), 0x7BFF);
  EXPECT_EQ(bits_of(Fp16(65520.0F)), 0x7C00);
  EXPECT_EQ(bits_of(Fp16(0x1p-24F)), 0x0001);
  EXPECT_EQ(bits_of(Fp16(-std::numeric_limits<float>::infinity())), 0xFC00);
}

}  // namespace
}  // namespace libra
