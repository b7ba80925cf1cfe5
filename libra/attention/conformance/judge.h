// When a backend's result is good enough.
//
//   Judge judge(subject);
//   for (...) judge.add("8:2 heads", problem, results);
//   judge.verdict();
//
// fp64: every element within 1e-10 of the tensor's largest value. fp32, bf16 and fp16, as
// FlashAttention's own tests do: the largest error is at most twice that of a dense computation in
// the same precision, so the bar follows from the arithmetic and not from a tolerance. Both errors
// are taken relative to the tensor's largest value and over all problems that one judge was given:
// the largest of a few dozen rounding errors is luck, that of thousands is a measure.
//
// On top come the rounding steps that no implementation can avoid where the dense computation
// happens to be exact (a single key, say, whose dS is a difference of two equal sums):
//   - kSteps steps of the accumulation type, relative to the largest term before cancellation;
//   - for O, half a step of the storage type, relative to the largest value.
// LSE -inf must be met exactly, and NaN is never right.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "libra/attention/conformance/oracle.h"

namespace libra::conformance {

inline constexpr double kSteps = 4;

class Judge {
 public:
  /// Of what `subject` computes.
  explicit Judge(const Subject& subject) : rounds_gradients_(subject.rounds_gradients()) {}

  /// Failures are named after `label`. All problems of one judge have the same dtype.
  void add(const std::string& label, const Problem& problem, const Results& actual,
           double poison = 0.0);

  /// Records a GoogleTest failure for every one of the five results that is not good enough.
  void verdict() const;

 private:
  struct Standing {
    double excess = 0;     ///< largest error beyond the unavoidable steps, relative
    double yardstick = 0;  ///< largest error of the dense computation, relative
    std::string where;     ///< of the largest error
  };

  bool rounds_gradients_;
  std::array<Standing, 5> standings_;
};

/// Calls function(dtype, dims, label, judge) for everything the subject supports. Dims too small
/// for many rounding errors have a judge of their own.
template <typename Function>
void for_each_dtype_and_dims(const Subject& subject, Function&& function) {
  for (const DType dtype : subject.dtypes()) {
    Judge tiny(subject);
    Judge usual(subject);
    for (const HeadDims dims : subject.head_dims()) {
      function(dtype, dims, fmt::format("{}, dims {} and {}", dtype_name(dtype), dims.qk, dims.v),
               std::min(dims.qk, dims.v) < 16 ? tiny : usual);
    }
    tiny.verdict();
    usual.verdict();
  }
}

/// A judge of this one problem.
void expect_good(const Subject& subject, const Problem& problem, const Results& actual,
                 double poison = 0.0);

}  // namespace libra::conformance
