// The loops of tile_math.h, written once over a vector type of Bytes bytes. Private to
// tile_math.cpp, which compiles them for several instruction sets: a function may be inlined only
// into one whose instruction set includes its own, hence always_inline on everything here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "libra/attention/reference/tile_math.h"

#define LIBRA_TILE_INLINE [[gnu::always_inline]] inline

namespace libra::reference {

template <typename Acc, int Bytes>
struct VectorOf {
  using Values [[gnu::vector_size(Bytes)]] = Acc;
};

/// Bit patterns as wide as Acc, and the constants of exp.
template <typename Acc>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  using Bits = std::int32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr float kLog2E = 0x1.715476p0F;
  static constexpr float kRound = 0x1.8p23F;  // adding it leaves the nearest integer in low bits
  static constexpr float kLn2High = 0x1.62e4p-1F;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  static constexpr float kLowest = -87.0F;  // below: 0, to keep subnormals out
  static constexpr float kHighest = 88.0F;
  static constexpr std::size_t kTerms = 8;
};

template <>
struct ExpConstants<double> {
  using Bits = std::int64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr double kLog2E = 0x1.71547652b82fep0;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLn2High = 0x1.62e42fefap-1;
  static constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
  static constexpr double kLowest = -708.0;
  static constexpr double kHighest = 709.0;
  static constexpr std::size_t kTerms = 14;
};

template <typename Acc, std::size_t Terms>
constexpr std::array<Acc, Terms> inverse_factorials() {
  std::array<Acc, Terms> values{};
  double factorial = 1;
  for (std::size_t i = 0; i < Terms; ++i) {
    if (i > 0) factorial *= static_cast<double>(i);
    values[i] = static_cast<Acc>(1.0 / factorial);
  }
  return values;
}

template <typename Acc, int Bytes>
struct Vectors {
  using Constants = ExpConstants<Acc>;
  using V = typename VectorOf<Acc, Bytes>::Values;
  using B = typename VectorOf<typename Constants::Bits, Bytes>::Values;
  static constexpr std::int64_t kLanes = Bytes / static_cast<std::int64_t>(sizeof(Acc));

  LIBRA_TILE_INLINE static void load(V& to, const Acc* from) { std::memcpy(&to, from, Bytes); }
  LIBRA_TILE_INLINE static void store(const V& from, Acc* to) { std::memcpy(to, &from, Bytes); }

  /// x = exp(x), in place: 2^n * exp(r) with |r| <= ln(2)/2 and Taylor's series for the rest.
  LIBRA_TILE_INLINE static void exp(V& x) {
    const V input = x;
    x = x < V{} + Constants::kLowest ? V{} + Constants::kLowest : x;
    x = x > V{} + Constants::kHighest ? V{} + Constants::kHighest : x;
    const V shifted = x * Constants::kLog2E + Constants::kRound;
    const V n = shifted - Constants::kRound;
    const V r = (x - n * Constants::kLn2High) - n * Constants::kLn2Low;
    V series = V{} + kTaylor[Constants::kTerms - 1];
#pragma GCC unroll 16
    for (std::size_t term = Constants::kTerms - 1; term > 0; --term) {
      series = series * r + kTaylor[term - 1];
    }
    B exponent;
    std::memcpy(&exponent, &shifted, Bytes);
    const V one = V{} + Acc{1};
    B bits;
    std::memcpy(&bits, &one, Bytes);
    bits += exponent << Constants::kMantissaBits;
    V power;
    std::memcpy(&power, &bits, Bytes);
    // A product, and not a sum of exponents: it keeps a NaN of the series a NaN.
    x = input < V{} + Constants::kLowest ? V{} : series * power;
  }

 private:
  static constexpr auto kTaylor = inverse_factorials<Acc, Constants::kTerms>();
};

/// A block of Rows x (Columns vectors) of c, held in registers over all of k.
template <typename Acc, int Bytes, int Rows, int Columns>
LIBRA_TILE_INLINE void product_block(const Product<Acc>& p, std::int64_t i, std::int64_t j) {
  using Vec = Vectors<Acc, Bytes>;
  typename Vec::V sums[std::size_t{Rows}][std::size_t{Columns}];
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int col = 0; col < Columns; ++col) {
      Vec::load(sums[row][col], p.c->row(i + row) + j + col * Vec::kLanes);
    }
  }
  const Acc* a = p.a + i * p.a_row;
  const Acc* b = p.b->row(0) + j;
  const std::int64_t b_stride = p.b->stride();
  for (std::int64_t k = 0; k < p.k; ++k, a += p.a_column, b += b_stride) {
    typename Vec::V right[std::size_t{Columns}];
#pragma GCC unroll 4
    for (int col = 0; col < Columns; ++col) Vec::load(right[col], b + col * Vec::kLanes);
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
      const Acc left = a[row * p.a_row];
#pragma GCC unroll 4
      for (int col = 0; col < Columns; ++col) sums[row][col] += left * right[col];
    }
  }
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) {
#pragma GCC unroll 4
    for (int col = 0; col < Columns; ++col) {
      Vec::store(sums[row][col], p.c->row(i + row) + j + col * Vec::kLanes);
    }
  }
}

template <typename Acc, int Bytes, int Rows>
LIBRA_TILE_INLINE void product_rows(const Product<Acc>& p, std::int64_t i) {
  constexpr std::int64_t kLanes = Vectors<Acc, Bytes>::kLanes;
  std::int64_t j = 0;
  for (; j + 2 * kLanes <= padded<Acc>(p.n); j += 2 * kLanes) {
    product_block<Acc, Bytes, Rows, 2>(p, i, j);
  }
  for (; j < p.n; j += kLanes) product_block<Acc, Bytes, Rows, 1>(p, i, j);
}

template <typename Acc, int Bytes, int Rows>
LIBRA_TILE_INLINE void multiply_add_loop(const Product<Acc>& p) {
  std::int64_t i = 0;
  for (; i + Rows <= p.m; i += Rows) product_rows<Acc, Bytes, Rows>(p, i);
  for (; i < p.m; ++i) product_rows<Acc, Bytes, 1>(p, i);
}

template <typename Acc, int Bytes>
LIBRA_TILE_INLINE void softmax_lanes(const SoftmaxStep<Acc>& step, std::int64_t lane) {
  using Vec = Vectors<Acc, Bytes>;
  using V = typename Vec::V;
  V before;
  Vec::load(before, step.max + lane);
  V max = before;
  V x;
  for (std::int64_t key = 0; key < step.keys; ++key) {
    Vec::load(x, step.scores->row(key) + lane);
    max = x > max ? x : max;
  }
  // A lane that has seen no key has max -inf; -inf - (-inf) would be NaN.
  const V shift = max == V{} - std::numeric_limits<Acc>::infinity() ? V{} : max;
  V sum{};
  for (std::int64_t key = 0; key < step.keys; ++key) {
    Vec::load(x, step.scores->row(key) + lane);
    x -= shift;
    Vec::exp(x);
    sum += x;
    Vec::store(x, step.scores->row(key) + lane);
  }
  V correction = before - shift;
  Vec::exp(correction);
  V total;
  Vec::load(total, step.sum + lane);
  Vec::store(total * correction + sum, step.sum + lane);
  Vec::store(max, step.max + lane);
  Vec::store(correction, step.correction + lane);
}

template <typename Acc, int Bytes>
LIBRA_TILE_INLINE void online_softmax_loop(const SoftmaxStep<Acc>& step) {
  for (std::int64_t lane = 0; lane < step.lanes; lane += Vectors<Acc, Bytes>::kLanes) {
    softmax_lanes<Acc, Bytes>(step, lane);
  }
}

template <typename Acc, int Bytes>
LIBRA_TILE_INLINE void score_gradient_loop(const ScoreGradient<Acc>& step) {
  using Vec = Vectors<Acc, Bytes>;
  for (std::int64_t lane = 0; lane < step.lanes; lane += Vec::kLanes) {
    typename Vec::V lse;
    typename Vec::V delta;
    Vec::load(lse, step.lse + lane);
    Vec::load(delta, step.delta + lane);
    for (std::int64_t key = 0; key < step.keys; ++key) {
      typename Vec::V p;
      typename Vec::V d_p;
      Vec::load(p, step.scores->row(key) + lane);
      Vec::load(d_p, step.d_p->row(key) + lane);
      p -= lse;
      Vec::exp(p);
      Vec::store(p, step.scores->row(key) + lane);
      Vec::store(p * (d_p - delta), step.d_p->row(key) + lane);
    }
  }
}

}  // namespace libra::reference

#undef LIBRA_TILE_INLINE
