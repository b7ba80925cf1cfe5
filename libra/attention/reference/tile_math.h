// The three inner loops that attention spends its time in, on tiles, in the widest vectors that the
// machine has: matrix product, online softmax, and the gradient of the scores.
//
//   const TileMath<float>& math = tile_math<float>();
//   math.multiply_add({a.row(0), a.stride(), 1, &b, &c, m, k, n});
//
// Scores lie transposed: one row per key, one column ("lane") per query row. Softmax then needs no
// sum across a vector, and neither K nor V has to be transposed. Every function adds in an order
// that depends on its arguments and the machine's instruction set only.
#pragma once

#include <cstdint>

#include "libra/attention/reference/tile.h"

namespace libra::reference {

/// c[m x n] += a[m x k] * b[k x n]. Element (i, j) of `a` is a[i * a_row + j * a_column], so that a
/// transposed left side costs nothing. Columns are padded up to whole lines.
template <typename Acc>
struct Product {
  const Acc* a;
  std::int64_t a_row;
  std::int64_t a_column;
  const Tile<Acc>* b;
  Tile<Acc>* c;
  std::int64_t m;
  std::int64_t k;
  std::int64_t n;
};

/// Takes up `keys` more rows of scores (-inf: masked) and replaces them by exp(score - max). The
/// running state has one value a lane, in arrays padded to whole lines.
template <typename Acc>
struct SoftmaxStep {
  Tile<Acc>* scores;
  std::int64_t keys;
  std::int64_t lanes;
  Acc* max;         ///< largest score so far, -inf before the first
  Acc* sum;         ///< sum of exp(score - max) so far
  Acc* correction;  ///< out: what earlier outputs are to be multiplied by
};

/// scores -> p = exp(score - lse); d_p -> p * (d_p - delta), the gradient of the scores.
template <typename Acc>
struct ScoreGradient {
  Tile<Acc>* scores;
  Tile<Acc>* d_p;
  std::int64_t keys;
  std::int64_t lanes;
  const Acc* lse;    ///< one value a lane, finite or NaN
  const Acc* delta;  ///< one value a lane: dO . O
};

template <typename Acc>
struct TileMath {
  void (*multiply_add)(const Product<Acc>& product);
  void (*online_softmax)(const SoftmaxStep<Acc>& step);
  void (*score_gradient)(const ScoreGradient<Acc>& step);
  const char* instruction_set;  ///< "baseline", "avx2" or "avx512"
};

/// For Acc float and double: the fastest set this machine can run. Thread-safe, constant time.
template <typename Acc>
const TileMath<Acc>& tile_math();

}  // namespace libra::reference
