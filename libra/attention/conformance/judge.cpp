#include "libra/attention/conformance/judge.h"

#include <fmt/format.h>
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

// The rounding that judge.h calls unavoidable.
double unavoidable(const Comparison& comparison, const Truth& truth, DType storage) {
  const HostTensor& values = truth.results.*comparison.tensor;
  const double steps =
      kSteps * step(accumulation_dtype(storage)) * truth.magnitudes.*comparison.magnitude;
  const bool stored = storage != DType::kFp64 && values.dtype == storage;
  return steps + (stored ? 0.5 * step(storage) * largest(values) : 0.0);
}

std::string describe(const std::string& label, const Comparison& comparison,
                     const HostTensor& actual, const HostTensor& truth, std::size_t index) {
  const auto vector = static_cast<std::int64_t>(index) / truth.dim;
  return fmt::format("{}: {} at row {}, head {} is {} instead of {}", label, comparison.name,
                     vector / truth.heads, vector % truth.heads, actual.values[index],
                     truth.values[index]);
}

}  // namespace

void Judge::add(const std::string& label, const Problem& problem, const Results& actual,
                double poison) {
  const DType storage = problem.q.dtype;
  const Truth truth = exact(problem, poison);
  const Results plain =
      storage == DType::kFp64 ? Results{} : same_precision(problem, rounds_gradients_, poison);
  for (std::size_t i = 0; i < standings_.size(); ++i) {
    const Comparison& comparison = kComparisons[i];
    const HostTensor& expected = truth.results.*comparison.tensor;
    const Worst found = worst(actual.*comparison.tensor, expected);
    const double scale = std::max(largest(expected), std::numeric_limits<double>::min());
    const double excess = (found.error - unavoidable(comparison, truth, storage)) / scale;
    const double yardstick =
        storage == DType::kFp64 ? 0.5e-10 : worst(plain.*comparison.tensor, expected).error / scale;
    standings_[i].yardstick = std::max(standings_[i].yardstick, yardstick);
    if (excess <= standings_[i].excess) continue;
    standings_[i].excess = excess;
    standings_[i].where =
        describe(label, comparison, actual.*comparison.tensor, expected, found.index);
  }
}

void Judge::verdict() const {
  for (const Standing& standing : standings_) {
    EXPECT_LE(standing.excess, 2 * standing.yardstick) << standing.where;
  }
}

void expect_good(const Subject& subject, const Problem& problem, const Results& actual,
                 double poison) {
  Judge judge(subject);
  judge.add(std::string(dtype_name(problem.q.dtype)), problem, actual, poison);
  judge.verdict();
}

}  // namespace libra::conformance
