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
};
inline constexpr Judged kJudged[] = {{"O", &LayerOutputs::o, true},
                                     {"LSE", &LayerOutputs::lse, false},
                                     {"dQ", &LayerOutputs::dq, true},
                                     {"dK", &LayerOutputs::dk, true},
                                     {"dV", &LayerOutputs::dv, true}};

}  // namespace libra::testing
