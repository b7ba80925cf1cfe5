#include "libra/attention/conformance/judge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace libra::conformance {
namespace {

double error_at(double actual, double truth) {
  if (actual == truth) return 0;  // -inf, too
  const double error = std::abs(actual - truth);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

struct Worst {
  double error = 0;
  std::size_t index = 0;
};

Worst worst(const HostTensor& actual, const HostTensor& truth) {
  Worst result;
  for (std::size_t i = 0; i < truth.values.size(); ++i) {
    const double error = error_at(actual.values[i], truth.values[i]);
    if (error > result.error) result = {error, i};
  }
  return result;
}

double largest(const HostTensor& tensor) {
  double result = 0;
  for (const double value : tensor.values) {
    if (std::isfinite(value)) result = std::max(result, std::abs(value));
  }
  return result;
}

struct Comparison {
  const char* name;
  HostTensor Results::*tensor;
  double Magnitudes::*magnitude;
};

constexpr Comparison kComparisons[] = {{"O", &Results::o, &Magnitudes::o},
                                       {"LSE", &Results::lse, &Magnitudes::lse},
                                       {"dQ", &Results::dq, &Magnitudes::dq},
                                       {"dK", &Results::dk, &Magnitudes::dk},
                                       {"dV", &Results::dv, &Magnitudes::dv}};

double allowed(const Comparison& comparison, const Truth& truth, const Results& plain,
               DType storage) {
  const HostTensor& exact_values = truth.results.*comparison.tensor;
  double result =
      kSteps * step(accumulation_dtype(storage)) * truth.magnitudes.*comparison.magnitude;
  if (storage == DType::kFp64) return result + 1e-10 * largest(exact_values);
  if (exact_values.dtype == storage) result += 0.5 * step(storage) * largest(exact_values);
  return result + 2 * worst(plain.*comparison.tensor, exact_values).error;
}

}  // namespace

void expect_good(const Problem& problem, const Results& actual, double poison) {
  const Truth truth = exact(problem, poison);
  const bool full = problem.q.dtype == DType::kFp64;
  const Results plain = full ? Results{} : same_precision(problem, poison);
  for (const Comparison& comparison : kComparisons) {
    const HostTensor& expected = truth.results.*comparison.tensor;
    const Worst found = worst(actual.*comparison.tensor, expected);
    const auto vector = static_cast<std::int64_t>(found.index) / expected.dim;
    EXPECT_LE(found.error, allowed(comparison, truth, plain, problem.q.dtype))
        << dtype_name(problem.q.dtype) << ' ' << comparison.name << " at row "
        << vector / expected.heads << ", head " << vector % expected.heads << ": "
        << (actual.*comparison.tensor).values[found.index] << " instead of "
        << expected.values[found.index];
  }
}

}  // namespace libra::conformance
