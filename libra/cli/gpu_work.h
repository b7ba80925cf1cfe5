// Measurements on this machine's GPUs: what `libra calibrate` and `libra replay` are made of. In a
// program built without the GPU rooms every function throws a ConfigError that says so.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libra/cost/device_profile.h"
#include "libra/plan/pool_plan.h"

namespace libra::cli {

/// Called after each of the steps that a measurement consists of: done, of how many.
using OnStep = std::function<void(std::int64_t, std::int64_t)>;

struct CalibrationOptions {
  std::int32_t device = 0;
  /// Nodes of the table. Queries beyond the keys get the rate of the nearest node that can occur.
  std::vector<std::int64_t> queries = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
  std::vector<std::int64_t> keys = {644, 4096, 32768, 65536};
  std::vector<std::int64_t> heads = {1, 2, 4, 8, 16, 32};
  int repetitions = 5;
};

/// Rates of saturated calls, constants per entry and call, bf16, head dimension 128, a KV head for
/// four query heads.
DeviceProfileData measure_profile(const CalibrationOptions& options, const OnStep& on_step);

/// Of a causal sample of `block` tokens, many of them in a call of `heads` heads: the paper's
/// Figure 5.
struct BlockRate {
  std::int64_t block = 0;
  std::int32_t heads = 0;
  double forward_tflops = 0;
  double backward_tflops = 0;
};
std::vector<BlockRate> measure_block_rates(std::int32_t device,
                                           const std::vector<std::int64_t>& blocks,
                                           const std::vector<std::int32_t>& heads,
                                           const OnStep& on_step);

/// The same attention on every GPU at the same time, step by step: seconds [step][device]. The
/// paper's Figure 3.
std::vector<std::vector<double>> measure_equal_work(int steps, const OnStep& on_step);

/// Both directions at once between devices 0 and 1, GB/s per direction; 0 where there is none.
struct CopyRate {
  std::int64_t bytes = 0;
  double copy_engine = 0;
  double nccl = 0;
};
std::vector<CopyRate> measure_copies(const std::vector<std::int64_t>& sizes, const OnStep& on_step);

/// What a worker's kernels took, in seconds.
struct ReplayedWorker {
  double forward = 0;
  double backward = 0;
};

/// Runs every worker's compute of the plan with random data and no exchange, one after the other on
/// each of `devices`, whichever is free; `rounds` times, medians. `on_step` is called by one thread
/// at a time. Throws ConfigError for a device that is not there or is given twice.
std::vector<ReplayedWorker> replay_workers(const PoolPlan& plan,
                                           const std::vector<std::int32_t>& devices, int rounds,
                                           const OnStep& on_step);

}  // namespace libra::cli
