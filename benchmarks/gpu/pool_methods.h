// The ways to run the same windows that pool_times compares, and their plans.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_plan.h"

namespace libra {

/// What is run; the program's options.
struct PoolStudy {
  std::string corpus = "data/mix.npy";
  std::string seq_len = "128K";
  std::string model = "qwen3-8b";
  std::string profile = "h200";
  std::string cluster = "hgx-h200";
  std::int32_t pool = 2;
  std::int32_t cp = 1;
  std::int32_t gbs = 16;
  std::int32_t windows = 4;
  std::int32_t tau_ppm = 5'000;
  std::int64_t block = 4096;
  std::int32_t head_shards = 2;
  std::uint64_t seed = 1;
  std::vector<std::string> methods;  ///< empty: all

  std::int32_t workers() const { return pool * cp; }
};

/// One method and its plans: every sequence of every window once.
struct MethodPlans {
  std::string name;
  std::vector<PoolPlan> plans;
  std::vector<double> predicted_ms;  ///< by plan: the slowest worker's time, of the simulator
};

/// Throws ConfigError for an unknown method and for what a plan cannot be made of.
std::vector<MethodPlans> plan_methods(const PoolStudy& study);

}  // namespace libra
