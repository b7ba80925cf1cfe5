#include "tests/compare_outputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace libra::testing {
namespace {

bool near(double expected, double found, double tolerance) {
  return expected == found || std::abs(expected - found) <= tolerance;  // false for NaN
}

// Empty if equal, else which element differs.
std::string first_difference(const HostTensor& expected, const HostTensor& found,
                             double tolerance) {
  for (std::int64_t row = 0; row < expected.rows(); ++row) {
    for (std::int32_t head = 0; head < expected.heads(); ++head) {
      for (std::int32_t c = 0; c < expected.dim(); ++c) {
        const double want = expected.get(row, head, c);
        const double have = found.get(row, head, c);
        if (!near(want, have, tolerance)) {
          return fmt::format("token {}, head {}, component {}: expected {}, found {}", row, head, c,
                             want, have);
        }
      }
    }
  }
  return {};
}

}  // namespace

void expect_outputs_near(const LayerOutputs& expected, const LayerOutputs& found,
                         double tolerance) {
  EXPECT_EQ(first_difference(expected.o, found.o, tolerance), "") << "O";
  EXPECT_EQ(first_difference(expected.lse, found.lse, tolerance), "") << "LSE";
  EXPECT_EQ(first_difference(expected.dq, found.dq, tolerance), "") << "dQ";
  EXPECT_EQ(first_difference(expected.dk, found.dk, tolerance), "") << "dK";
  EXPECT_EQ(first_difference(expected.dv, found.dv, tolerance), "") << "dV";
}

}  // namespace libra::testing
