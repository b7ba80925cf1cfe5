#include "libra/sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "libra/base/error.h"
#include "libra/base/rng.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/rules.h"

namespace libra {
namespace {

void check_experts(const Scenario& scenario) {
  require_positive("EP", scenario.ep);
  if (scenario.ep == 1) return;
  if (!scenario.linear.moe()) {
    throw ConfigError(fmt::format("EP is {}, but {} has no experts: nearest legal value 1",
                                  scenario.ep, scenario.model.name));
  }
  require_divides("EP", scenario.ep, "the GPUs of a stage (DP x CP)", scenario.stage_gpus());
  require_divides("EP", scenario.ep, "the number of experts", scenario.linear.experts);
}

const Scenario& checked(const Scenario& scenario) {
  check_scenario(scenario);
  return scenario;
}

}  // namespace

void check_scenario(const Scenario& scenario) {
  validate(scenario.cluster);
  validate(scenario.model.attention);
  check_window(scenario.gbs, scenario.dp, scenario.pool);
  check_options(scenario.plan, scenario.pool);
  require_positive("PP", scenario.pp);
  require_at_most("PP", scenario.pp, scenario.model.layers);
  require_positive("the sequence length", scenario.seq_tokens);
  require_at_most("the sequence length", scenario.seq_tokens, DeviceProfile::kMaxSampleTokens);
  check_experts(scenario);
  if (scenario.wlb_token_cap < 1 || scenario.wlb_token_cap > 16) {
    throw ConfigError(fmt::format("the token cap of wlb is {}: it must be between 1 and 16",
                                  scenario.wlb_token_cap));
  }
}

std::int32_t largest_pool(std::int32_t dp, std::int32_t wanted) {
  std::int32_t pool = std::max(1, std::min(dp, wanted));
  while (dp % pool != 0) --pool;
  return pool;
}

Environment::Environment(const Scenario& scenario)
    : Environment(scenario, load_device_profile(checked(scenario).cluster.device_profile)) {}

Environment::Environment(const Scenario& scenario, const DeviceProfile& device)
    : scenario_(checked(scenario)),
      device_(std::make_shared<const DeviceProfile>(device.for_shape(scenario.model.attention))),
      cost_(libra::compute_cost(device_)) {}

double Environment::slowness(std::int64_t gpu, std::int64_t step) const {
  constexpr double kLeast = 0.5;
  const Cluster& cluster = scenario_.cluster;
  double factor = 1;
  const auto stream = static_cast<std::uint64_t>(gpu);
  if (cluster.gpu_variation > 0) {
    factor += cluster.gpu_variation * Rng(scenario_.seed, stream).normal();
  }
  if (cluster.step_variation > 0) {
    const auto draw = static_cast<std::uint64_t>(step + 1) << 32;
    factor += cluster.step_variation * Rng(scenario_.seed, draw + stream).normal();
  }
  return std::max(kLeast, factor);
}

}  // namespace libra
