#include "libra/sim/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/cluster_plan.h"
#include "libra/plan/pool_assignment.h"
#include "libra/sim/cp_times.h"
#include "libra/sim/distca_times.h"
#include "libra/sim/evenness.h"
#include "libra/sim/ideal.h"
#include "libra/sim/plan_times.h"

namespace libra {
namespace {

constexpr auto kProduction = Arrangement::kProduction;
constexpr auto kVrsp = Arrangement::kVrsp;
constexpr auto kPools = Arrangement::kPools;
constexpr auto kPlan = Execution::kPlan;

WlbOptions wlb_options(const Scenario& scenario, Arrangement arrangement) {
  WlbOptions options;
  options.bins = scenario.gbs;
  options.bin_tokens = scenario.seq_tokens;
  options.token_cap = scenario.wlb_token_cap;
  // A sample's attention is 2 * q_heads * (dims) * l^2 / 2 FLOPs, its linear layers 2 * parameters
  // * l.
  const AttentionShape& shape = scenario.plan.shape;
  const double per_token =
      2.0 * static_cast<double>(scenario.linear.active_parameters(scenario.model));
  options.equal_cost_tokens = per_token / (forward_flops(shape, shape.q_heads) / 2);
  options.delay = arrangement == Arrangement::kWlb;
  return options;
}

std::vector<PackedSequence> in_order(std::span<const PackedSequence> window,
                                     const std::vector<std::int32_t>& order) {
  std::vector<PackedSequence> sequences;
  sequences.reserve(order.size());
  for (const std::int32_t index : order) sequences.push_back(window[at(index)]);
  return sequences;
}

std::vector<PackedSequence> sorted_by_work(std::span<const PackedSequence> window) {
  const std::vector<std::int64_t> costs = costs_of(window);
  std::vector<std::int32_t> order(window.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&costs](std::int32_t a, std::int32_t b) {
    return costs[at(a)] > costs[at(b)];
  });
  return in_order(window, order);
}

PoolAssignment shipped_pools(const std::vector<std::int64_t>& costs, std::int32_t pool_size,
                             bool like_loads_at_once) {
  const PoolAssignment pools = assign_pools(costs, pool_size, Grouping::kVrspRefined);
  return like_loads_at_once ? by_load(costs, pools) : pools;
}

// What we ship plans for the cluster; all else is what its method says, whatever that takes.
PoolPlan pool_plan(const Environment& environment, const PlanOptions& options,
                   const std::vector<PackedSequence>& sequences) {
  if (options.placer != PlacerKind::kBalanced) return make_plan(options, sequences);
  return make_plan_for(environment.scenario().cluster, options, sequences,
                       environment.compute_cost());
}

PoolTimes pool_times(const Environment& environment, const Method& method,
                     std::span<const PackedSequence> sequences, std::int32_t first_replica,
                     std::int64_t step) {
  const std::int64_t first_gpu = std::int64_t{first_replica} * environment.scenario().plan.cp;
  switch (method.execution) {
    case Execution::kRing:
      return ring_times(environment, sequences.front(), {first_gpu, step});
    case Execution::kGathered:
      return gathered_times(environment, sequences.front(), {first_gpu, step});
    case Execution::kDistca:
      return distca_times(environment, sequences, method.distca_tolerance, step);
    default:
      break;
  }
  const PlanOptions options = plan_options(environment.scenario(), method);
  const auto begin = std::chrono::steady_clock::now();
  const PoolPlan plan = pool_plan(environment, options, {sequences.begin(), sequences.end()});
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
  PoolTimes times = plan_times(environment, plan, {first_gpu, step, method.overlapped});
  times.plan_us = spent.count();
  return times;
}

}  // namespace

const std::vector<Method>& known_methods() {
  static const std::vector<Method> methods = {
      {"none", "context parallelism with contiguous shares, nothing moved", kProduction, kPlan,
       true, Scope::kReplica, PlacerKind::kNone},
      {"ulysses", "all-to-all inside the CP group, a head shard per rank", kProduction, kPlan, true,
       Scope::kReplica, PlacerKind::kUlysses},
      {"ring-zigzag", "causal-balanced ring inside the CP group", kProduction, Execution::kRing},
      {"sorted", "ulysses, GA indices of sequences of like work", Arrangement::kSorted, kPlan, true,
       Scope::kReplica, PlacerKind::kUlysses},
      {"wlb", "WLB-LLM: repacked by work, outliers wait (changes the step's samples)",
       Arrangement::kWlb, Execution::kGathered, false},
      {"wlb-repack", "the same without delay", Arrangement::kWlbRepack, Execution::kGathered},
      {"distca", "DistCA's greedy over all workers, tolerance 0.1", kProduction, Execution::kDistca,
       true, Scope::kAll, PlacerKind::kNone, false, true, 0.1},
      {"distca-tight", "the same, tolerance 0.001", kProduction, Execution::kDistca, true,
       Scope::kAll, PlacerKind::kNone, false, true, 0.001},
      {"distca-emulated", "as the paper emulates it: libra-paper's tiles and overlap, P = DP",
       kProduction, kPlan, true, Scope::kAll, PlacerKind::kPaper, true, true},
      {"libra-paper-tap", "the paper's placer in pools of P", kProduction, kPlan, true,
       Scope::kPool, PlacerKind::kPaper, true, false},
      {"libra-paper-tap-vrsp", "and pools of like work", kVrsp, kPlan, true, Scope::kPool,
       PlacerKind::kPaper, true, false},
      {"libra-paper", "and overlap: the paper's full system", kVrsp, kPlan, true, Scope::kPool,
       PlacerKind::kPaper, true, true},
      {"libra-tap", "our placer in pools of P", kProduction, kPlan, true, Scope::kPool,
       PlacerKind::kBalanced, false, false},
      {"libra-tap-vrsp", "and pools of like work", kPools, kPlan, true, Scope::kPool,
       PlacerKind::kBalanced, false, false},
      {"libra", "and overlap: what we ship", kPools, kPlan, true, Scope::kPool,
       PlacerKind::kBalanced, false, true},
      {"ideal", "perfect balance, free network", kProduction, Execution::kIdeal, true,
       Scope::kAll}};
  return methods;
}

const Method& find_method(std::string_view name) {
  std::string names;
  for (const Method& method : known_methods()) {
    if (method.name == name) return method;
    names += names.empty() ? "" : ", ";
    names += method.name;
  }
  throw ConfigError(fmt::format("'{}' is not a method: use one of {}", name, names));
}

PlanOptions plan_options(const Scenario& scenario, const Method& method) {
  PlanOptions options = scenario.plan;
  if (method.placer == PlacerKind::kNone || method.placer == PlacerKind::kUlysses) {
    // Whole shares are the largest calls, and nothing has to be movable.
    options.block_tokens =
        std::max<std::int64_t>(1, (scenario.seq_tokens + options.cp - 1) / options.cp);
    options.placer = method.placer;
    options.fetch = default_fetch(method.placer);
  }
  if (method.placer == PlacerKind::kUlysses) options.head_shards = options.cp;
  if (method.placer == PlacerKind::kPaper) options.placer = PlacerKind::kPaper;
  if (method.faithful) options = faithful(options);
  if (!method.overlapped) options.chunks = 1;
  check_options(options, pool_replicas(scenario, method));
  return options;
}

std::int32_t pool_replicas(const Scenario& scenario, const Method& method) {
  switch (method.scope) {
    case Scope::kReplica:
      return 1;
    case Scope::kPool:
      return scenario.pool;
    case Scope::kAll:
      return scenario.dp;
  }
  return 1;
}

Arranger::Arranger(const Scenario& scenario, const Method& method)
    : pool_(pool_replicas(scenario, method)),
      by_load_(scenario.pools_by_load),
      arrangement_(method.arrangement),
      packer_(wlb_options(scenario, method.arrangement)) {}

std::vector<PackedSequence> Arranger::arrange(std::span<const PackedSequence> window) {
  switch (arrangement_) {
    case Arrangement::kProduction:
      return {window.begin(), window.end()};
    case Arrangement::kVrsp:
      return in_order(window, assign_pools(costs_of(window), pool_, Grouping::kVrsp).order);
    case Arrangement::kPools:
      return in_order(window, shipped_pools(costs_of(window), pool_, by_load_).order);
    case Arrangement::kSorted:
      return sorted_by_work(window);
    case Arrangement::kWlb:
    case Arrangement::kWlbRepack:
      return packer_.pack(window);
  }
  return {};
}

std::vector<std::vector<PoolTimes>> window_times(const Environment& environment,
                                                 const Method& method,
                                                 std::span<const PackedSequence> slots,
                                                 std::int64_t first_step) {
  const Scenario& scenario = environment.scenario();
  if (method.execution == Execution::kIdeal) return ideal_times(environment, slots);
  const std::int32_t replicas = pool_replicas(scenario, method);
  std::vector<std::vector<PoolTimes>> times(at(scenario.ga()));
  for (std::int32_t ga = 0; ga < scenario.ga(); ++ga) {
    times[at(ga)].reserve(at(scenario.dp / replicas));
    for (std::int32_t replica = 0; replica < scenario.dp; replica += replicas) {
      const auto sequences = slots.subspan(at(ga * scenario.dp + replica), at(replicas));
      times[at(ga)].push_back(pool_times(environment, method, sequences, replica, first_step + ga));
    }
  }
  return times;
}

}  // namespace libra
