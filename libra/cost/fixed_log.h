// Binary logarithms and their inverse in whole numbers: std::log2 and std::exp2 differ in their
// last bit between C libraries, and plans must be equal on every rank.
//
// Internal to this room. Tables of 1024 steps with straight lines between them: log2_fixed is off
// by less than 3e-7 (1.8e-7 for the straight line, 2^-24 each for the table and for the blend),
// exp2_fixed by less than 1e-7 of its value; both are exact at powers of two.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace libra::fixed_log {

inline constexpr int kFractionBits = 24;  ///< logarithms are in units of 2^-24
inline constexpr int kTableBits = 10;
inline constexpr int kBetweenBits = kFractionBits - kTableBits;
inline constexpr std::size_t kTableSize = (std::size_t{1} << kTableBits) + 1;

// log2(mantissa / 2^31) by squaring: whenever the square passes 2 the next bit is set.
constexpr std::int64_t log2_of_mantissa(std::uint64_t mantissa) {
  std::int64_t log = 0;
  for (int bit = 0; bit < kFractionBits; ++bit) {
    mantissa = (mantissa * mantissa) >> 31;
    log <<= 1;
    if (mantissa >= (std::uint64_t{1} << 32)) {
      mantissa >>= 1;
      log += 1;
    }
  }
  return log;
}

constexpr std::uint64_t integer_sqrt(std::uint64_t square) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= square) root += bit;
  }
  return root;
}

constexpr std::array<std::int64_t, kTableSize> make_log_table() {
  std::array<std::int64_t, kTableSize> table{};
  for (std::size_t i = 0; i + 1 < kTableSize; ++i) {
    const std::uint64_t step = std::uint64_t{1} << (31 - kTableBits);
    table[i] = log2_of_mantissa((std::uint64_t{1} << 31) + i * step);
  }
  table[kTableSize - 1] = std::int64_t{1} << kFractionBits;
  return table;
}

// 2^(i/1024) as a product of the roots 2^(1/2), 2^(1/4), ... that i's bits choose; in units of
// 2^-31.
constexpr std::array<std::uint64_t, kTableSize> make_exp_table() {
  std::array<std::uint64_t, kTableSize> table{};
  for (std::size_t i = 0; i < kTableSize; ++i) table[i] = std::uint64_t{1} << 31;
  table[kTableSize - 1] = std::uint64_t{1} << 32;
  std::uint64_t root = std::uint64_t{1} << 32;
  for (int bit = kTableBits - 1; bit >= 0; --bit) {
    root = integer_sqrt(root << 31);
    for (std::size_t i = 0; i + 1 < kTableSize; ++i) {
      if (((i >> bit) & 1U) != 0) table[i] = (table[i] * root) >> 31;
    }
  }
  return table;
}

inline constexpr auto kLogTable = make_log_table();
inline constexpr auto kExpTable = make_exp_table();

/// log2(x) in units of 2^-24. Requires x >= 1.
constexpr std::int64_t log2_fixed(std::uint64_t x) {
  const int exponent = 63 - std::countl_zero(x);
  const std::uint64_t mantissa = (x << (63 - exponent)) << 1;  // without its leading one
  const auto index = static_cast<std::size_t>(mantissa >> (64 - kTableBits));
  const auto between = static_cast<std::int64_t>((mantissa << kTableBits) >> (64 - kFractionBits));
  const std::int64_t step = kLogTable[index + 1] - kLogTable[index];
  return (std::int64_t{exponent} << kFractionBits) + kLogTable[index] +
         ((step * between) >> kFractionBits);
}

/// 2^(fraction / 2^24) in units of 2^-31. Requires fraction in [0, 2^24).
constexpr std::uint64_t exp2_fixed(std::uint64_t fraction) {
  const auto index = static_cast<std::size_t>(fraction >> kBetweenBits);
  const std::uint64_t between = fraction & ((std::uint64_t{1} << kBetweenBits) - 1);
  const std::uint64_t step = kExpTable[index + 1] - kExpTable[index];
  return kExpTable[index] + ((step * between) >> kBetweenBits);
}

}  // namespace libra::fixed_log
