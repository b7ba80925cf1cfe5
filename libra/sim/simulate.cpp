#include "libra/sim/simulate.h"

#include <algorithm>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/sim/parallel.h"
#include "libra/sim/simulation_checks.h"
#include "libra/sim/spread.h"
#include "libra/sim/window_figures.h"

namespace libra {
namespace {

/// A method and what its windows gave.
struct Run {
  const Method* method = nullptr;
  std::string skipped;
  std::vector<std::vector<PackedSequence>> slots;  // by window, where they depend on earlier ones
  std::vector<WindowFigures> windows;
};

std::string reason_to_skip(const Scenario& scenario, const Method& method) {
  if (method.execution != Execution::kPlan) return "";
  try {
    plan_options(scenario, method);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

Run arranged(const Scenario& scenario, const Method& method,
             const std::vector<std::vector<PackedSequence>>& windows) {
  Run run{&method, reason_to_skip(scenario, method), {}, {}};
  if (!run.skipped.empty()) return run;
  run.windows.resize(windows.size());
  if (method.arrangement != Arrangement::kWlb) return run;
  Arranger arranger(scenario, method);
  run.slots.reserve(windows.size());
  for (const auto& window : windows) run.slots.push_back(arranger.arrange(window));
  return run;
}

/// What is asked for, and what all are compared with.
std::vector<const Method*> with_references(std::vector<const Method*> methods) {
  for (const char* const name : {"ulysses", "ideal"}) {
    const Method* const reference = &find_method(name);
    if (std::find(methods.begin(), methods.end(), reference) == methods.end()) {
      methods.push_back(reference);
    }
  }
  return methods;
}

template <typename Get>
double mean_of(const Run& run, const Get& get) {
  double sum = 0;
  for (const WindowFigures& window : run.windows) sum += get(window);
  return run.windows.empty() ? 0 : sum / static_cast<double>(run.windows.size());
}

MeanMax mean_max_of(const Run& run, MeanMax WindowFigures::*figure) {
  return {mean_of(run, [&](const WindowFigures& w) { return (w.*figure).mean_ms; }),
          mean_of(run, [&](const WindowFigures& w) { return (w.*figure).max_ms; })};
}

LinkBytes bytes_of(const Run& run, LinkBytes WindowFigures::*figure) {
  return {mean_of(run, [&](const WindowFigures& w) { return (w.*figure).nvlink; }),
          mean_of(run, [&](const WindowFigures& w) { return (w.*figure).inter_node; })};
}

void add_microbatches(const Run& run, MethodFigures& figures) {
  double sum = 0;
  std::size_t count = 0;
  figures.microbatch_min_ms = run.windows.front().microbatch_ms.front();
  figures.microbatch_ms.reserve(run.windows.size());
  for (const WindowFigures& window : run.windows) {
    figures.microbatch_ms.push_back(window.microbatch_ms);
    for (const double ms : window.microbatch_ms) {
      figures.microbatch_min_ms = std::min(figures.microbatch_min_ms, ms);
      figures.microbatch_max_ms = std::max(figures.microbatch_max_ms, ms);
      sum += ms;
      ++count;
    }
  }
  figures.microbatch_mean_ms = sum / static_cast<double>(count);
}

void add_step_figures(const Scenario& scenario, const Run& run, MethodFigures& figures) {
  for (const WindowFigures& window : run.windows) figures.step_seconds.push_back(window.step_s);
  const auto mean = [&](double WindowFigures::*figure) {
    return mean_of(run, [figure](const WindowFigures& w) { return w.*figure; });
  };
  figures.step_s = mean(&WindowFigures::step_s);
  figures.step_s_deviation = standard_deviation(figures.step_seconds);
  figures.bubble_share = mean(&WindowFigures::bubble_share);
  figures.attention_share = mean(&WindowFigures::attention_s) / figures.step_s;
  figures.sync_s = mean(&WindowFigures::sync_s);
  figures.tokens = mean(&WindowFigures::tokens);
  figures.tokens_per_gpu_s = figures.tokens / figures.step_s / scenario.gpus();
  for (const WindowFigures& window : run.windows) {
    figures.memory_bytes = std::max(figures.memory_bytes, window.memory_bytes);
    figures.extra_memory_bytes = std::max(figures.extra_memory_bytes, window.extra_memory_bytes);
  }
}

MethodFigures summary(const Scenario& scenario, const Run& run) {
  MethodFigures figures;
  figures.method = run.method;
  figures.skipped = run.skipped;
  if (!run.skipped.empty() || run.windows.empty()) return figures;
  figures.straggler = mean_max_of(run, &WindowFigures::straggler);
  figures.forward = mean_max_of(run, &WindowFigures::forward);
  figures.backward = mean_max_of(run, &WindowFigures::backward);
  figures.straggler_compute = mean_max_of(run, &WindowFigures::straggler_compute);
  figures.forward_bytes = bytes_of(run, &WindowFigures::forward_bytes);
  figures.backward_bytes = bytes_of(run, &WindowFigures::backward_bytes);
  figures.exposed_comm_ms = mean_of(run, [](const WindowFigures& w) { return w.exposed_comm_ms; });
  figures.max_over_mean = mean_of(run, [](const WindowFigures& w) { return w.max_over_mean; });
  std::vector<double> plan_us;
  plan_us.reserve(run.windows.size());
  for (const WindowFigures& window : run.windows) plan_us.push_back(window.plan_us);
  figures.plan_us = median(std::move(plan_us));
  add_step_figures(scenario, run, figures);
  add_microbatches(run, figures);
  figures.worker_ms = run.windows.front().worker_ms;
  figures.timeline = run.windows.front().timeline;
  return figures;
}

double work_of(const Run& run) {
  double work = 0;
  for (const WindowFigures& window : run.windows) work += static_cast<double>(window.work);
  return work;
}

void compare(MethodFigures& figures, const MethodFigures& ulysses, const MethodFigures& ideal) {
  if (!figures.skipped.empty()) return;
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
  if (ulysses.skipped.empty()) {
    figures.speedup_mean = ratio(ulysses.straggler.mean_ms, figures.straggler.mean_ms);
    figures.speedup_max = ratio(ulysses.straggler.max_ms, figures.straggler.max_ms);
  }
  figures.efficiency = ratio(figures.tokens_per_gpu_s, ideal.tokens_per_gpu_s);
}

WindowFigures simulated(const Environment& environment, const Run& run,
                        const std::vector<PackedSequence>& window, std::size_t index) {
  const Scenario& scenario = environment.scenario();
  const std::vector<PackedSequence> slots =
      run.slots.empty() ? Arranger(scenario, *run.method).arrange(window) : run.slots[index];
  const auto attention = window_times(environment, *run.method, slots,
                                      scenario.ga() * static_cast<std::int64_t>(index));
  return window_figures(environment, *run.method, attention, slots, index == 0);
}

void run_all(const Environment& environment, std::vector<Run>& runs,
             const std::vector<std::vector<PackedSequence>>& windows,
             const SimulateOptions& options) {
  parallel_for(runs.size() * windows.size(), options.threads, [&](std::size_t task) {
    Run& run = runs[task % runs.size()];
    const std::size_t index = task / runs.size();
    if (run.skipped.empty()) {
      run.windows[index] = simulated(environment, run, windows[index], index);
    }
    if (options.advance) options.advance();
  });
}

}  // namespace

std::int64_t simulation_tasks(std::size_t windows, const std::vector<const Method*>& methods) {
  return static_cast<std::int64_t>(windows * with_references(methods).size());
}

Simulation simulate(const Environment& environment,
                    const std::vector<std::vector<PackedSequence>>& windows,
                    const std::vector<const Method*>& methods, const SimulateOptions& options) {
  const Scenario& scenario = environment.scenario();
  LIBRA_CHECK(!windows.empty(), "no window to simulate");
  const std::vector<const Method*> all = with_references(methods);
  std::vector<Run> runs(all.size());
  parallel_for(runs.size(), options.threads,
               [&](std::size_t i) { runs[i] = arranged(scenario, *all[i], windows); });
  run_all(environment, runs, windows, options);
  std::vector<MethodFigures> figures;
  const MethodFigures* ulysses = nullptr;
  const MethodFigures* ideal = nullptr;
  figures.reserve(runs.size());
  for (const Run& run : runs) {
    figures.push_back(summary(scenario, run));
    if (run.method->name == "ulysses") ulysses = &figures.back();
    if (run.method->name == "ideal") ideal = &figures.back();
  }
  const auto ideal_run = std::find_if(runs.begin(), runs.end(), [](const Run& run) {
    return run.method->execution == Execution::kIdeal;
  });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].skipped.empty()) continue;
    check_equal_work(*runs[i].method, runs[i].windows, ideal_run->windows);
    check_bound(scenario.cluster, figures[i], *ideal);
    figures[i].work_share = work_of(runs[i]) / work_of(*ideal_run);
  }
  check_pools_of_one(scenario, figures);
  for (MethodFigures& of_method : figures) compare(of_method, *ulysses, *ideal);
  figures.resize(methods.size());
  return {std::move(figures)};
}

}  // namespace libra
