#include "python/bindings/planning.h"

#include <memory>
#include <utility>

#include "libra/cost/device_profile.h"
#include "libra/plan/memory_plan.h"

namespace libra::python {
namespace {

PieceCost piece_cost(const AttentionShape& shape, const std::optional<std::string>& profile) {
  if (!profile) return flops_cost;
  return seconds_cost(
      std::make_shared<const DeviceProfile>(load_device_profile(*profile).for_shape(shape)));
}

}  // namespace

Planning::Planning(PlanOptions options, const std::optional<std::string>& device_profile,
                   std::optional<std::int64_t> memory_cap)
    : options_(std::move(options)),
      cost_(piece_cost(options_.shape, device_profile)),
      cost_heads_(device_profile ? options_.shape.q_heads : 1),
      memory_cap_(memory_cap) {}

PoolPlan Planning::plan(const std::vector<PackedSequence>& sequences) const {
  if (memory_cap_) return make_plan_within(options_, sequences, *memory_cap_, cost_);
  return make_plan(options_, sequences, cost_);
}

std::int64_t Planning::cost(const PackedSequence& sequence) const {
  std::int64_t cost = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    cost += cost_({0, tokens}, cost_heads_);
  }
  return cost;
}

}  // namespace libra::python
