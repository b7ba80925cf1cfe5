// One attention problem with its inputs, and what comes out of it, on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/attention/conformance/subject.h"
#include "libra/attention/conformance/tensors.h"
#include "libra/base/rng.h"

namespace libra::conformance {

struct Problem {
  AttentionCall call;
  HostTensor q, k, v, d_o;
  double initial_gradient = 0;  ///< what dQ, dK and dV hold before backward
};

/// Of a complete forward and backward.
struct Results {
  HostTensor o, lse, dq, dk, dv;
};

/// Shapes of the tensors that a call works on, and the size of their values.
struct Shape {
  DType dtype = DType::kFp64;
  HeadDims dims = {64, 64};
  std::int64_t q_rows = 0;
  std::int64_t kv_rows = 0;
  std::int32_t q_heads = 1;
  std::int32_t kv_heads = 1;
  double q_amplitude = 1.0;  ///< scores are about q_amplitude * k_amplitude
  double k_amplitude = 1.0;
};

/// Random inputs. A softmax_scale of 1 in `call` is replaced by 1 / sqrt(d_qk).
Problem make_problem(const AttentionCall& call, const Shape& shape, Rng& rng);

/// One entry over all rows of its tensors.
Problem single_entry(const Shape& shape, Mask mask, Rng& rng);

/// 1 to 6 entries of random masks and lengths (0 among them), on random rows and heads of larger
/// tensors; entries share keys; head shifts.
Problem random_problem(DType dtype, HeadDims dims, Rng& rng);

/// 1 to 5 top-left causal squares, on the same rows of Q and K; gradients are written.
Problem random_squares(DType dtype, HeadDims dims, Rng& rng);
/// The same on all heads of the tensors: a backend may treat those as dense.
Problem random_squares_of_all_heads(DType dtype, HeadDims dims, Rng& rng);

/// 1 to 5 entries as in random_problem, but none share a key; gradients are written.
Problem random_disjoint_problem(DType dtype, HeadDims dims, Rng& rng);

/// What the tensors hold before forward and backward: `poison` in O and LSE, the initial gradient.
Results blank_results(const Problem& problem, double poison);

/// Sets dQ, dK and dV of every row and head that an entry names.
void set_named_gradients(const AttentionCall& call, double value, Results& results);

}  // namespace libra::conformance
