#include "libra/sim/window_figures.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libra/sim/spread.h"
#include "libra/sim/step_model.h"

namespace libra {
namespace {

constexpr double kMilli = 1e3;  // milliseconds in a second

/// Slowest workers of one GA index, in ms.
struct Slowest {
  double total = 0;
  double forward = 0;
  double backward = 0;
  double compute = 0;
  double exposed = 0;  // of the worker that has `total`
  double sum = 0;      // of all workers' totals
  double workers = 0;

  void add(const WorkerTimes& worker) {
    const double ms = worker.total() * kMilli;
    if (ms > total) {
      total = ms;
      exposed = ms - worker.compute() * kMilli;
    }
    forward = std::max(forward, worker.forward * kMilli);
    backward = std::max(backward, worker.backward * kMilli);
    compute = std::max(compute, worker.compute() * kMilli);
    sum += ms;
    workers += 1;
  }
};

void add(MeanMax& figure, double ms, double share) {
  figure.mean_ms += ms * share;
  figure.max_ms = std::max(figure.max_ms, ms);
}

void add_ga_index(const std::vector<PoolTimes>& pools, double share, WindowFigures& figures) {
  Slowest slowest;
  for (const PoolTimes& pool : pools) {
    for (const WorkerTimes& worker : pool.workers) slowest.add(worker);
    figures.work += pool.work;
    figures.extra_memory_bytes =
        std::max(figures.extra_memory_bytes, static_cast<double>(pool.extra_memory_bytes));
    figures.forward_bytes +=
        {pool.forward_bytes.nvlink * share, pool.forward_bytes.inter_node * share};
    figures.backward_bytes +=
        {pool.backward_bytes.nvlink * share, pool.backward_bytes.inter_node * share};
  }
  add(figures.straggler, slowest.total, share);
  add(figures.forward, slowest.forward, share);
  add(figures.backward, slowest.backward, share);
  add(figures.straggler_compute, slowest.compute, share);
  figures.exposed_comm_ms += slowest.exposed * share;
  const double mean = slowest.sum / slowest.workers;
  figures.max_over_mean += (mean > 0 ? slowest.total / mean : 1) * share;
}

void add_worker_times(const std::vector<PoolTimes>& pools, WindowFigures& figures) {
  for (const PoolTimes& pool : pools) {
    for (const WorkerTimes& worker : pool.workers) {
      if (figures.worker_ms.size() == kShownWorkers) return;
      figures.worker_ms.push_back(worker.total() * kMilli);
    }
  }
}

}  // namespace

WindowFigures window_figures(const Environment& environment, const Method& method,
                             const std::vector<std::vector<PoolTimes>>& attention,
                             std::span<const PackedSequence> slots, bool details) {
  WindowFigures figures;
  const double share = 1.0 / static_cast<double>(attention.size());
  std::vector<double> plan_us;
  for (const std::vector<PoolTimes>& pools : attention) {
    add_ga_index(pools, share, figures);
    for (const PoolTimes& pool : pools) plan_us.push_back(pool.plan_us);
  }
  figures.plan_us = median(std::move(plan_us));
  std::int64_t longest = environment.scenario().seq_tokens;  // repacked ones may be longer
  for (const PackedSequence& sequence : slots) {
    longest = std::max(longest, sequence.tokens);
    figures.tokens += static_cast<double>(std::accumulate(
        sequence.sample_tokens.begin(), sequence.sample_tokens.end(), std::int64_t{0}));
  }
  // Of `ideal` all but gradients is divided evenly: linear layers and a pipeline's time, too.
  StepTimes step =
      method.execution == Execution::kIdeal
          ? least_step_times(environment.scenario(), attention.front().front().workers.front(),
                             figures.tokens / static_cast<double>(slots.size()))
          : step_times(environment, attention, slots);
  figures.step_s = step.step_s;
  figures.sync_s = step.sync_s;
  figures.bubble_share = step.bubble_share;
  figures.attention_s = step.attention_s;
  figures.memory_bytes = memory_bytes(environment.scenario(), longest, figures.extra_memory_bytes);
  figures.microbatch_ms = std::move(step.microbatch_forward_s);
  for (double& ms : figures.microbatch_ms) ms *= kMilli;
  if (details) {
    add_worker_times(attention.front(), figures);
    figures.timeline = std::move(step.slowest);
  }
  return figures;
}

}  // namespace libra
