// IEEE half precision storage on the CPU: 5 bits of exponent, 10 of mantissa. Arithmetic is done in
// float.
#pragma once

#include <bit>
#include <cstdint>

namespace libra {

/// Two bytes, trivially copyable. Conversion from float rounds to nearest, ties to even; beyond
/// 65504 it gives infinity, NaN stays NaN.
class Fp16 {
 public:
  Fp16() = default;
  explicit Fp16(float value) : bits_(round(value)) {}
  explicit operator float() const {
    const auto sign = static_cast<std::uint32_t>(bits_ & 0x8000U) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude()) | sign);
  }

 private:
  static constexpr std::uint32_t kRebias = 112U << 23;  // between the two formats' exponents

  float magnitude() const {
    const std::uint32_t bits = bits_ & 0x7FFFU;
    if (bits < 0x400U) return static_cast<float>(bits) * 0x1p-24F;  // subnormal
    if (bits >= 0x7C00U) return std::bit_cast<float>(0x7F800000U | bits << 13);
    return std::bit_cast<float>((bits << 13) + kRebias);
  }

  static std::uint16_t round(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    return static_cast<std::uint16_t>(sign | round_magnitude(bits & 0x7FFFFFFFU));
  }

  static std::uint32_t round_magnitude(std::uint32_t bits) {
    if (bits > 0x7F800000U) return 0x7E00U;   // NaN
    if (bits >= 0x477FF000U) return 0x7C00U;  // rounds beyond 65504
    if (bits < 0x38800000U) {
      // Below 2^-14. Half's last place there is that of floats in [0.5, 1).
      const float shifted = std::bit_cast<float>(bits) + 0.5F;
      return std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U;
    }
    return (bits - kRebias + 0xFFFU + ((bits >> 13) & 1U)) >> 13;
  }

  std::uint16_t bits_ = 0;
};

}  // namespace libra
