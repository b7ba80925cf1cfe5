#include "tests/compare_outputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace libra::testing {
namespace {

bool near(double expected, double found, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  return expected == found || std::abs(expected - found) <= tolerance;  // false for NaN
}

}  // namespace

std::string first_difference(const std::string& name, const HostTensor& expected,
                             const HostTensor& found, double tolerance) {
  for (std::int64_t row = 0; row < expected.rows(); ++row) {
    for (std::int32_t head = 0; head < expected.heads(); ++head) {
      for (std::int32_t c = 0; c < expected.dim(); ++c) {
        const double want = expected.get(row, head, c);
        const double have = found.get(row, head, c);
        if (!near(want, have, tolerance)) {
          return fmt::format("{}, token {}, head {}, component {}: expected {}, found {}; ", name,
                             row, head, c, want, have);
        }
      }
    }
  }
  return {};
}

void expect_outputs_near(const LayerOutputs& expected, const LayerOutputs& found,
                         double tolerance) {
  EXPECT_EQ(first_difference("O", expected.o, found.o, tolerance), "");
  EXPECT_EQ(first_difference("LSE", expected.lse, found.lse, tolerance), "");
  EXPECT_EQ(first_difference("dQ", expected.dq, found.dq, tolerance), "");
  EXPECT_EQ(first_difference("dK", expected.dk, found.dk, tolerance), "");
  EXPECT_EQ(first_difference("dV", expected.dv, found.dv, tolerance), "");
}

bool all_nan(const HostTensor& tensor) {
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int32_t head = 0; head < tensor.heads(); ++head) {
      for (std::int32_t c = 0; c < tensor.dim(); ++c) {
        if (!std::isnan(tensor.get(row, head, c))) return false;
      }
    }
  }
  return true;
}

}  // namespace libra::testing
