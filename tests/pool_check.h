// Runs a plan on in-process workers and compares what comes out with plain attention.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/runtime/pool_run.h"

namespace libra::testing {

inline constexpr double kTolerance = 1e-10;  // of fp64, through the whole distributed path
inline constexpr double kSoftmaxScale = 0.4;

/// GoogleTest expectations: forward and backward of the plan, which must be valid and in fp64, on
/// in-process workers and random inputs.
void expect_exact(const PoolPlan& plan, std::uint64_t seed, const WholeLimits& limits = {});

/// A run on in-process workers, kSoftmaxScale.
PoolRun run_inproc(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                   const WholeLimits& limits = {});

/// Whole samples of all workers.
std::int64_t whole_samples(const PoolPlan& plan, const WholeLimits& limits = {});

/// What plain attention gives for a replica; NaN as the LSE of rows that were computed elsewhere
/// and whose LSE the plan does not bring home.
LayerOutputs expected_outputs(const PoolPlan& plan, std::int32_t replica,
                              const SequenceTensors& inputs);

}  // namespace libra::testing
