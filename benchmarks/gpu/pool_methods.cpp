#include "benchmarks/gpu/pool_methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "benchmarks/study_windows.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/cost/device_profile.h"
#include "libra/cost/model_shape.h"
#include "libra/sim/plan_times.h"

namespace libra {
namespace {

struct Method {
  std::string name;
  PlanOptions options;
  PieceCost cost;
  Grouping grouping = Grouping::kVrsp;
};

PlanOptions base_options(const PoolStudy& study, const AttentionShape& shape) {
  PlanOptions base;
  base.shape = shape;
  base.cp = study.cp;
  base.block_tokens = study.block;
  base.head_shards = study.head_shards;
  base.tau_ppm = study.tau_ppm;
  return base;
}

std::vector<Method> all_methods(const PoolStudy& study, const AttentionShape& shape,
                                const DeviceProfile& device) {
  const PieceCost seconds =
      seconds_cost(std::make_shared<const DeviceProfile>(device.for_shape(shape)));
  const PlanOptions base = base_options(study, shape);
  const auto with = [&base](const std::function<void(PlanOptions&)>& change) {
    PlanOptions changed = base;
    change(changed);
    return changed;
  };
  const PlanOptions ulysses = with([](PlanOptions& o) {
    o.placer = PlacerKind::kUlysses;
    o.head_shards = o.cp;
  });
  return {{"none", with([](PlanOptions& o) { o.placer = PlacerKind::kNone; }), seconds},
          {"ulysses", ulysses, seconds},
          {"libra", base, seconds},
          {"no-vrsp", base, seconds, Grouping::kProduction},
          {"four-chunks", with([](PlanOptions& o) { o.chunks = 4; }), seconds},
          {"one-chunk", with([](PlanOptions& o) { o.chunks = 1; }), seconds},
          {"flops", base, flops_cost},
          {"refetch", with([](PlanOptions& o) { o.backward = BackwardMode::kRefetch; }), seconds},
          {"faithful", faithful(base), flops_cost}};
}

std::vector<Method> wanted_methods(const PoolStudy& study, std::vector<Method> all) {
  if (study.methods.empty()) return all;
  std::vector<Method> wanted;
  for (const std::string& name : study.methods) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Method& method) { return method.name == name; });
    if (found == all.end()) throw ConfigError(fmt::format("--methods: there is no '{}'", name));
    wanted.push_back(*found);
  }
  return wanted;
}

using Sequences = std::vector<PackedSequence>;

std::vector<Sequences> pools_of(const std::vector<Sequences>& windows, std::int32_t pool,
                                Grouping grouping) {
  std::vector<Sequences> pools;
  for (const Sequences& window : windows) {
    std::vector<std::int64_t> costs;
    costs.reserve(window.size());
    for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
    const PoolAssignment assignment = assign_pools(costs, pool, grouping);
    for (std::int32_t k = 0; k < assignment.pools(); ++k) {
      Sequences& members = pools.emplace_back();
      for (const std::int32_t index : assignment.pool(k)) members.push_back(window[at(index)]);
    }
  }
  return pools;
}

// GPUs of equal speed: what is measured has its own.
Environment environment_of(const PoolStudy& study, const ModelShape& model) {
  Scenario scenario;
  scenario.model = model;
  scenario.cluster = load_cluster(study.cluster);
  scenario.cluster.gpu_variation = scenario.cluster.step_variation = 0;
  scenario.cluster.device_profile = study.profile;
  scenario.cluster.device_speed = 1;
  scenario.seq_tokens = parse_size(study.seq_len);
  scenario.gbs = study.gbs;
  scenario.dp = scenario.pool = study.pool;
  scenario.plan = base_options(study, model.attention);
  return Environment(scenario);
}

double slowest_ms(const PoolTimes& times) {
  double seconds = 0;
  for (const WorkerTimes& worker : times.workers) seconds = std::max(seconds, worker.total());
  return 1e3 * seconds;
}

}  // namespace

std::vector<MethodPlans> plan_methods(const PoolStudy& study) {
  const ModelShape model = find_model(study.model);
  const Environment environment = environment_of(study, model);
  const auto windows =
      study_windows(study.corpus, parse_size(study.seq_len), study.gbs, study.windows, study.seed);
  std::vector<MethodPlans> result;
  for (const Method& method : wanted_methods(
           study, all_methods(study, model.attention, load_device_profile(study.profile)))) {
    MethodPlans& plans = result.emplace_back();
    plans.name = method.name;
    for (const Sequences& pool : pools_of(windows, study.pool, method.grouping)) {
      plans.plans.push_back(make_plan(method.options, pool, method.cost));
      plans.predicted_ms.push_back(slowest_ms(plan_times(environment, plans.plans.back(), {})));
    }
  }
  return result;
}

}  // namespace libra
