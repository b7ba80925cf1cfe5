// Compares a run's outputs with the oracle's, element by element.
#pragma once

#include <string>

#include "libra/runtime/worker_run.h"

namespace libra::testing {

/// Names the first element for which not |found - expected| <= tolerance; infinities must be equal,
/// and NaN be exactly where it is expected. Empty if there is none.
std::string first_difference(const std::string& name, const HostTensor& expected,
                             const HostTensor& found, double tolerance);

/// GoogleTest expectations: no difference in O, LSE, dQ, dK and dV.
void expect_outputs_near(const LayerOutputs& expected, const LayerOutputs& found, double tolerance);

/// Whether every element is NaN.
bool all_nan(const HostTensor& tensor);

}  // namespace libra::testing
