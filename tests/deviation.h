// How far a run's outputs in low precision are from the truth.
#pragma once

#include <algorithm>
#include <cmath>

#include "libra/runtime/worker_run.h"

namespace libra::testing {

/// Over a whole tensor.
struct Deviation {
  double error = 0;
  double largest = 0;

  void add(const HostTensor& truth, const HostTensor& found) {
    for (std::int64_t row = 0; row < truth.rows(); ++row) {
      for (std::int32_t head = 0; head < truth.heads(); ++head) {
        for (std::int32_t c = 0; c < truth.dim(); ++c) {
          add(truth.get(row, head, c), found.get(row, head, c));
        }
      }
    }
  }

  void add(double want, double have) {
    if (want == have) return;  // -inf, too
    error = std::isfinite(have) ? std::max(error, std::abs(want - have)) : INFINITY;
    largest = std::max(largest, std::abs(want));
  }
};

struct Judged {
  const char* name;
  HostTensor LayerOutputs::*tensor;
  bool stored;  ///< in the storage dtype; LSE is not
  bool summed;  ///< over all who used a key
};
inline constexpr Judged kJudged[] = {{"O", &LayerOutputs::o, true, false},
                                     {"LSE", &LayerOutputs::lse, false, false},
                                     {"dQ", &LayerOutputs::dq, true, false},
                                     {"dK", &LayerOutputs::dk, true, true},
                                     {"dV", &LayerOutputs::dv, true, true}};

/// The error that a pool on GPUs may have in bf16: twice the reference's. Two allowances:
/// The reference's LSE is not rounded: a few steps of fp32. And a key's gradient is a sum over the
/// blocks that see the key, each of which kernels round to bf16, where the reference rounds once:
/// half a step of bf16 at the largest value.
inline double allowed_error(const Judged& judged, const Deviation& ours,
                            const Deviation& reference) {
  const double steps = judged.stored ? 0 : 16 * std::ldexp(ours.largest, -23);
  const double rounding = judged.summed ? std::ldexp(ours.largest, -8) : 0;
  return 2 * reference.error + steps + rounding;
}

}  // namespace libra::testing
