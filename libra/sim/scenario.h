// What is simulated: a model, trained with some parallelism on a cluster.
//
//   Scenario scenario;
//   scenario.model = find_model("qwen3-8b");  ...
//   const Environment environment(scenario);   // checked, with the device's times at hand
//
// Everything is deterministic: equal scenarios give equal figures, whatever the number of threads.
#pragma once

#include <cstdint>
#include <memory>

#include "libra/cost/cluster.h"
#include "libra/cost/device_profile.h"
#include "libra/cost/model_shape.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"
#include "libra/sim/linear_shape.h"

namespace libra {

struct Scenario {
  ModelShape model;
  LinearShape linear;
  Cluster cluster;

  std::int64_t seq_tokens = 0;
  std::int32_t gbs = 0;  ///< packed sequences of an optimizer step
  std::int32_t dp = 1;
  std::int32_t pp = 1;
  std::int32_t ep = 1;    ///< workers that share a layer's experts; consecutive GPUs of a stage
  std::int32_t pool = 1;  ///< P of the pooled methods
  bool pools_by_load = false;  ///< of our own methods: pools of like load share a GA index
  bool recompute = true;       ///< each layer's forward pass runs again in the backward pass
  double wlb_token_cap =
      1.25;  ///< methods wlb, wlb-repack: most tokens of a sequence over the mean

  /// CP, TP, home layout, B, H, M, tau, placer and fetch of method `libra`; others take what they
  /// share with it (methods.h).
  PlanOptions plan;
  std::uint64_t seed = 0;  ///< of the GPUs' speeds

  std::int32_t ga() const { return gbs / dp; }
  std::int32_t stage_gpus() const { return dp * plan.cp; }
  std::int32_t gpus() const { return stage_gpus() * pp; }
};

/// Throws ConfigError for the first rule that is broken (docs/design.md), with the nearest legal
/// value.
void check_scenario(const Scenario& scenario);

/// The largest divisor of `dp` up to `wanted`: the paper's min(wanted, DP).
std::int32_t largest_pool(std::int32_t dp, std::int32_t wanted);

/// A checked scenario and what it needs on the way. Immutable: any thread may read.
class Environment {
 public:
  /// Loads the cluster's device profile. Throws ConfigError and InputError.
  explicit Environment(const Scenario& scenario);
  /// With this device in place of the one that the cluster names.
  Environment(const Scenario& scenario, const DeviceProfile& device);

  const Scenario& scenario() const { return scenario_; }
  const DeviceProfile& device() const { return *device_; }

  /// The device's picoseconds, to plan with.
  const PieceCost& cost() const { return cost_.piece; }
  const ComputeCost& compute_cost() const { return cost_; }

  /// Seconds from a profile's picoseconds, at the cluster's speed.
  double seconds(std::int64_t ps) const {
    return static_cast<double>(ps) * 1e-12 / scenario_.cluster.device_speed;
  }

  /// How much longer than the mean GPU this one computes in this step: 1.01 is 1% longer. GPUs of
  /// the first stage; `step` counts GA indices over the whole run.
  double slowness(std::int64_t gpu, std::int64_t step) const;

 private:
  Scenario scenario_;
  std::shared_ptr<const DeviceProfile> device_;
  ComputeCost cost_;
};

}  // namespace libra
