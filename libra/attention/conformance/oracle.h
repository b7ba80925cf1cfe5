// Dense attention, written from its definition: materialised scores, plain softmax, analytic
// gradients. Slow, and independent of every backend.
//
// It runs in two arithmetics: exact (fp64 throughout) is the truth; same-precision is what a plain
// implementation in the storage type gives: fp32 throughout for fp32; for bf16 and fp16 every
// matrix (scores, probabilities, O, dP, dS) is rounded to it while sums are kept in fp32. Its
// backward starts from O and LSE as the interface stores them, since that rounding is not a
// backend's fault: P = exp(S - LSE), and dO . O for the sum of P dP. The error of the second is the
// yardstick for a backend's error.
#pragma once

#include "libra/attention/conformance/problem.h"

namespace libra::conformance {

/// For each result the largest term that goes into one of its elements, before terms cancel: what
/// a rounding step is relative to.
struct Magnitudes {
  double o = 0, lse = 0, dq = 0, dk = 0, dv = 0;
};

struct Truth {
  Results results;
  Magnitudes magnitudes;
};

/// Rows and heads that no entry names keep what blank_results has there.
Truth exact(const Problem& problem, double poison = 0.0);
/// Requires fp32, bf16 or fp16. With `rounds_gradients`, what one query head of an entry adds to a
/// gradient is rounded to the storage type, too.
Results same_precision(const Problem& problem, bool rounds_gradients, double poison = 0.0);

}  // namespace libra::conformance
