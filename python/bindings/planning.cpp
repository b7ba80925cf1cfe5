#include "python/bindings/planning.h"

#include <array>
#include <memory>
#include <utility>

#include "libra/base/error.h"
#include "libra/cost/device_profile.h"
#include "libra/plan/cluster_plan.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/used_options.h"

namespace libra::python {
namespace {

ComputeCost cost_of(const AttentionShape& shape, const std::optional<std::string>& profile) {
  if (!profile) return {flops_cost, nullptr};
  return compute_cost(
      std::make_shared<const DeviceProfile>(load_device_profile(*profile).for_shape(shape)));
}

std::optional<std::string> profile_of(const std::optional<std::string>& profile,
                                      const std::optional<Cluster>& cluster) {
  if (profile || !cluster) return profile;
  return cluster->device_profile;
}

// A profile that is given is of the cluster's own devices.
std::optional<Cluster> load(const std::optional<std::string>& name,
                            const std::optional<std::string>& profile,
                            const std::vector<std::int32_t>& gpus) {
  if (!name) return std::nullopt;
  Cluster cluster = load_cluster(*name);
  if (profile) cluster.device_speed = 1;
  return gpus.empty() ? cluster : as_seen_by(std::move(cluster), gpus);
}

}  // namespace

Planning::Planning(PlanOptions options, const std::optional<std::string>& device_profile,
                   std::optional<std::int64_t> memory_cap,
                   const std::optional<std::string>& cluster, const std::vector<std::int32_t>& gpus)
    : options_(std::move(options)),
      memory_cap_(memory_cap),
      cluster_(load(cluster, device_profile, gpus)) {
  if (cluster_ && memory_cap_) {
    throw ConfigError("plans for a cluster have no memory cap: give cluster or memory_cap");
  }
  const std::array placers = {options_.placer};
  check_used(options_, cluster_.has_value(), placers, option_name);
  const auto profile = profile_of(device_profile, cluster_);
  cost_ = cost_of(options_.shape, profile);
  cost_heads_ = profile ? options_.shape.q_heads : 1;
}

PoolPlan Planning::plan(const std::vector<PackedSequence>& sequences) const {
  if (cluster_) return make_plan_for(*cluster_, options_, sequences, cost_);
  if (memory_cap_) return make_plan_within(options_, sequences, *memory_cap_, cost_.piece);
  return make_plan(options_, sequences, cost_.piece);
}

std::int64_t Planning::cost(const PackedSequence& sequence) const {
  std::int64_t cost = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    cost += cost_.piece({0, tokens}, cost_heads_);
  }
  return cost;
}

}  // namespace libra::python
