#include "libra/cli/plan_study.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/index.h"
#include "libra/cli/plan_file.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/traffic.h"
#include "libra/plan/traffic_bound.h"
#include "libra/sim/spread.h"

namespace libra::cli {
namespace {

template <typename Function>
double microseconds(Function&& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
  return spent.count();
}

// What the plan uses: under --memory-cap and with --cluster not always what was asked for.
void add_used_options(PlacerFigures& figures, const PlanOptions& used) {
  figures.chunks.add(used.chunks);
  figures.head_shards.add(used.head_shards);
  figures.tau_ppm.add(used.tau_ppm);
  if (used.backward == BackwardMode::kRefetch) ++figures.refetch_pools;
}

// Adds a pool's plan to the sums; they become means at the end.
void add(PlacerFigures& sums, const PoolPlan& plan, std::int64_t first_gpu) {
  const TrafficReport forward = forward_traffic(plan);
  const double ratio = plan.placement.max_over_mean();
  const std::int64_t memory = max_memory_bytes(plan);
  add_used_options(sums, plan.options);
  ++sums.pools;
  sums.max_over_mean_mean += ratio;
  sums.max_over_mean_worst = std::max(sums.max_over_mean_worst, ratio);
  sums.bytes_total += static_cast<double>(forward.total());
  sums.bytes_inter_node +=
      static_cast<double>(forward.inter_node(plan.options.gpus_per_node, first_gpu));
  sums.bytes_bound += static_cast<double>(forward_bytes_bound(plan));
  sums.max_in_bytes += static_cast<double>(forward.max_in());
  sums.max_out_bytes += static_cast<double>(forward.max_out());
  sums.bytes_backward += static_cast<double>(backward_traffic(plan, plan.options.backward).total());
  sums.bytes_backward_keep +=
      static_cast<double>(backward_traffic(plan, BackwardMode::kKeep).total());
  sums.bytes_backward_refetch +=
      static_cast<double>(backward_traffic(plan, BackwardMode::kRefetch).total());
  sums.tiles += plan.tiling.tiles();
  sums.tiles_moved += plan.tiles_moved();
  sums.arena_bytes += static_cast<double>(max_arena_bytes(plan));
  sums.memory_bytes += static_cast<double>(memory);
  sums.memory_bytes_max = std::max(sums.memory_bytes_max, memory);
}

void finish(PlacerFigures& sums) {
  if (sums.pools == 0) return;
  for (double* sum : {&sums.max_over_mean_mean, &sums.bytes_total, &sums.bytes_inter_node,
                      &sums.bytes_bound, &sums.max_in_bytes, &sums.max_out_bytes,
                      &sums.bytes_backward, &sums.bytes_backward_keep, &sums.bytes_backward_refetch,
                      &sums.tiles, &sums.tiles_moved, &sums.arena_bytes, &sums.memory_bytes}) {
    *sum /= static_cast<double>(sums.pools);
  }
  sums.plan_us = median(sums.plan_times_us);
}

class Study {
 public:
  Study(Job& job, std::string save) : job_(job), save_(std::move(save)) {
    for (const PlacerPlan& plan : job.placers()) {
      study_.placers.emplace_back().plan = plan;
    }
  }

  void add_window() {
    const JobWindow window = job_.next();
    ++study_.steps;
    study_.epochs = std::max(study_.epochs, window.epoch + 1);
    std::vector<std::int64_t> costs;
    cost_times_us_.push_back(microseconds([&] { costs = job_.costs(window); }));
    const PoolAssignment pools = group(costs);
    if (study_.order.empty()) study_.order = pools.order;
    for (std::int32_t pool = 0; pool < pools.pools(); ++pool) {
      plan_pool(sequences_of(window, pools.pool(pool)), pool);
    }
  }

  PlanStudy result() {
    for (double& r : study_.r_minus_1) r /= static_cast<double>(study_.steps);
    study_.cost_us = median(cost_times_us_);
    study_.r_by_index_minus_1 /= static_cast<double>(study_.steps);
    study_.grouping_us = median(grouping_times_us_);
    for (PlacerFigures& figures : study_.placers) finish(figures);
    return std::move(study_);
  }

 private:
  // All groupings are measured, the job's is used.
  PoolAssignment group(const std::vector<std::int64_t>& costs) {
    for (std::size_t i = 0; i < kGroupings.size(); ++i) {
      study_.r_minus_1[i] +=
          imbalance(costs, assign_pools(costs, job_.options().pool.pool, kGroupings[i])) - 1;
    }
    PoolAssignment used;
    grouping_times_us_.push_back(microseconds([&] { used = job_.group(costs); }));
    study_.r_by_index_minus_1 += imbalance_by_index(costs, used, job_.pools_at_once()) - 1;
    return used;
  }

  void plan_pool(const std::vector<PackedSequence>& sequences, std::int32_t pool) {
    const PoolOptions& options = job_.options().pool;
    const std::int64_t first_gpu =
        std::int64_t{pool_slot(pool, options.dp, options.pool).group} * job_.workers();
    for (PlacerFigures& figures : study_.placers) {
      if (!figures.plan.skipped.empty()) continue;
      PoolPlan plan;
      std::vector<PackedSequence> own = sequences;
      figures.plan_times_us.push_back(
          microseconds([&] { plan = job_.plan(figures.plan.options, std::move(own)); }));
      add(figures, plan, first_gpu);
      if (!save_.empty() && figures.plan.placer == saved_placer(job_).placer) {
        study_.first_plan = encode_plan_file(plan, std::exchange(save_, {}));
      }
    }
  }

  Job& job_;
  std::string save_;  // empty once saved
  PlanStudy study_;
  std::vector<double> cost_times_us_;
  std::vector<double> grouping_times_us_;
};

}  // namespace

PlanStudy study_plans(Job& job, std::int64_t steps, const std::string& save,
                      const Console& console) {
  Study study(job, save);
  Progress progress(console, "planning window", steps);
  for (std::int64_t step = 0; step < steps; ++step) {
    study.add_window();
    progress.advance();
  }
  return study.result();
}

const PlacerPlan& saved_placer(const Job& job) {
  const auto& plans = job.placers();
  const auto last = std::find_if(plans.rbegin(), plans.rend(),
                                 [](const PlacerPlan& plan) { return plan.skipped.empty(); });
  LIBRA_CHECK(last != plans.rend(), "all placers were skipped");
  return *last;
}

}  // namespace libra::cli
