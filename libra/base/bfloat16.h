// bfloat16 storage on the CPU: the upper 16 bits of a float. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstdint>

namespace libra {

/// Two bytes, trivially copyable. Conversion from float rounds to nearest, ties to even; NaN stays
/// NaN.
class Bf16 {
 public:
  Bf16() = default;
  explicit Bf16(float value) : bits_(round(value)) {}
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

 private:
  static std::uint16_t round(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
  }

  std::uint16_t bits_ = 0;
};

}  // namespace libra
