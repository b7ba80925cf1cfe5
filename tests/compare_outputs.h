// Compares a run's outputs with the oracle's, element by element.
#pragma once

#include "libra/runtime/worker_run.h"

namespace libra::testing {

/// GoogleTest expectations: |found - expected| <= tolerance for every element of O, LSE, dQ, dK,
/// dV; infinities equal; no NaN. Stops at the first wrong element of each tensor and names it.
void expect_outputs_near(const LayerOutputs& expected, const LayerOutputs& found, double tolerance);

}  // namespace libra::testing
