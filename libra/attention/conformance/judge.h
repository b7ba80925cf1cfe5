// When a backend's result is good enough.
//
// fp64: every element within 1e-10 of the tensor's largest value. fp32 and bf16, as
// FlashAttention's own tests do: the largest error is at most twice that of a dense computation in
// the same precision, so the bar follows from the arithmetic and not from a tolerance.
//
// On top come the rounding steps that no implementation can avoid where the dense computation
// happens to be exact (a single key, say, whose dS is a difference of two equal sums):
//   - kSteps steps of the accumulation type, relative to the largest term before cancellation;
//   - for O, half a step of the storage type, relative to the largest value.
// LSE -inf must be met exactly, and NaN is never right.
#pragma once

#include "libra/attention/conformance/oracle.h"

namespace libra::conformance {

inline constexpr double kSteps = 4;

/// Records a GoogleTest failure for every one of the five results that is not good enough.
void expect_good(const Problem& problem, const Results& actual, double poison = 0.0);

}  // namespace libra::conformance
