// libra replay: what every worker of a large pool computes, run with real kernels, one worker after
// the other on one GPU or several, beside what the device profile predicts. The network is
// modelled.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "libra/base/error.h"
#include "libra/cli/command.h"
#include "libra/cli/gpu_work.h"
#include "libra/cli/job.h"
#include "libra/cli/job_environment.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/report.h"
#include "libra/cli/text_table.h"
#include "libra/plan/pool_assignment.h"
#include "libra/sim/plan_times.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Example:\n"
    "  libra replay --corpus synthetic:paper-256k --seq-len 256K --gbs 64 --dp 8 --cp 8 --pool 8 "
    "\\\n"
    "    --cost seconds --placer ulysses,balanced --pools 2";

struct Options {
  JobOptions job;
  std::string cluster;  ///< empty: hgx-h200 is modelled, and plans look at no links

  std::string modelled() const { return cluster.empty() ? "hgx-h200" : cluster; }
  std::vector<std::int32_t> devices{0};
  std::int32_t pools = 1;
  std::int32_t rounds = 3;
};

/// One pool under one placer.
struct Replay {
  PoolTimes predicted;
  std::vector<ReplayedWorker> measured;

  double predicted_compute(std::size_t worker) const { return predicted.workers[worker].compute(); }
  double measured_compute(std::size_t worker) const {
    return measured[worker].forward + measured[worker].backward;
  }
  // Measured computation and, on top, the communication that the model leaves exposed.
  double total(std::size_t worker) const {
    const WorkerTimes& times = predicted.workers[worker];
    return measured_compute(worker) + times.total() - times.compute();
  }

  template <typename Seconds>
  double slowest(Seconds seconds) const {
    double most = 0;
    for (std::size_t w = 0; w < measured.size(); ++w) most = std::max(most, (this->*seconds)(w));
    return most;
  }
  double measured_straggler() const { return slowest(&Replay::measured_compute); }
  double predicted_straggler() const { return slowest(&Replay::predicted_compute); }
  double straggler_total() const { return slowest(&Replay::total); }
};

/// All pools of one placer.
struct PlacerReplay {
  PlacerKind placer = PlacerKind::kNone;
  std::vector<Replay> pools;
};

std::vector<std::vector<PackedSequence>> first_pools(Job& job, std::int32_t wanted) {
  std::vector<std::vector<PackedSequence>> pools;
  while (std::ssize(pools) < wanted) {
    const JobWindow window = job.next();
    const PoolAssignment assignment = job.group(job.costs(window));
    for (std::int32_t k = 0; k < assignment.pools() && std::ssize(pools) < wanted; ++k) {
      pools.push_back(sequences_of(window, assignment.pool(k)));
    }
  }
  return pools;
}

std::vector<PlacerReplay> replay_all(Job& job, const Options& options, const Console& console) {
  const Environment environment = environment_of(job, options.modelled());
  const auto pools = first_pools(job, options.pools);
  std::vector<PlacerReplay> replays;
  for (const PlacerPlan& placer : job.placers()) {
    if (placer.skipped.empty()) replays.push_back({placer.placer, {}});
  }
  Progress progress(console, "replaying", std::ssize(pools) * std::ssize(replays) * job.workers());
  for (const auto& sequences : pools) {
    auto replay = replays.begin();
    for (const PlacerPlan& placer : job.placers()) {
      if (!placer.skipped.empty()) continue;
      PlanOptions plan_options = placer.options;
      plan_options.storage = DType::kBf16;
      const PoolPlan plan = job.plan(plan_options, sequences);
      replay->pools.push_back({plan_times(environment, plan, {}),
                               replay_workers(plan, options.devices, options.rounds,
                                              [&](auto, auto) { progress.advance(); })});
      ++replay;
    }
  }
  return replays;
}

double mean_error(const PlacerReplay& replay) {
  double sum = 0, count = 0;
  for (const Replay& pool : replay.pools) {
    for (std::size_t w = 0; w < pool.measured.size(); ++w) {
      if (pool.measured_compute(w) == 0) continue;
      sum += std::abs(pool.predicted_compute(w) / pool.measured_compute(w) - 1);
      ++count;
    }
  }
  return count > 0 ? sum / count : 0;
}

struct Comparison {
  double measured_ms = 0, predicted_ms = 0;  ///< stragglers' computation, means over the pools
  double worst_error = 0;                    ///< of a straggler
  double speedup_mean = 0, speedup_max = 0;  ///< over the first placer, with the network
};

Comparison compare(const PlacerReplay& replay, const PlacerReplay& baseline) {
  Comparison result;
  const auto pools = static_cast<double>(replay.pools.size());
  double before = 0, after = 0;
  for (std::size_t i = 0; i < replay.pools.size(); ++i) {
    const Replay& pool = replay.pools[i];
    const double measured = pool.measured_straggler(), predicted = pool.predicted_straggler();
    result.measured_ms += 1e3 * measured / pools;
    result.predicted_ms += 1e3 * predicted / pools;
    result.worst_error = std::max(result.worst_error, std::abs(predicted / measured - 1));
    before += baseline.pools[i].straggler_total();
    after += pool.straggler_total();
    result.speedup_max =
        std::max(result.speedup_max, baseline.pools[i].straggler_total() / pool.straggler_total());
  }
  result.speedup_mean = before / after;
  return result;
}

std::string workers_text(const PlacerReplay& replay) {
  TextTable table({"worker", "forward ms", "predicted", "backward ms", "predicted"});
  const Replay& pool = replay.pools.front();
  for (std::size_t w = 0; w < pool.measured.size(); ++w) {
    const WorkerTimes& times = pool.predicted.workers[w];
    table.add({fmt::format("{}", w), fmt::format("{:.2f}", 1e3 * pool.measured[w].forward),
               fmt::format("{:.2f}", 1e3 * times.forward_compute),
               fmt::format("{:.2f}", 1e3 * pool.measured[w].backward),
               fmt::format("{:.2f}", 1e3 * times.backward_compute)});
  }
  return fmt::format("\n{}, pool 0\n{}", placer_name(replay.placer), table.text());
}

Json workers_json(const PlacerReplay& replay) {
  Json pools = Json::array();
  for (const Replay& pool : replay.pools) {
    Json workers = Json::array();
    for (std::size_t w = 0; w < pool.measured.size(); ++w) {
      const WorkerTimes& times = pool.predicted.workers[w];
      workers.push_back({{"forward_ms", 1e3 * pool.measured[w].forward},
                         {"backward_ms", 1e3 * pool.measured[w].backward},
                         {"predicted_forward_ms", 1e3 * times.forward_compute},
                         {"predicted_backward_ms", 1e3 * times.backward_compute}});
    }
    pools.push_back(std::move(workers));
  }
  return pools;
}

void check(const Options& options) {
  if (options.pools < 1) throw ConfigError("--pools is 0: replay at least one");
  if (options.rounds < 1) throw ConfigError("--rounds is 0: each worker runs at least once");
}

// Plans are for a cluster that was given, where they can be.
JobOptions job_options(const Options& options) {
  JobOptions job = options.job;
  const auto& placers = job.pool.placers;  // if empty, balanced is among them
  const bool by_links =
      placers.empty() || std::any_of(placers.begin(), placers.end(), looks_at_links);
  if (job.pool.seconds && !job.pool.memory_cap && by_links) job.pool.cluster = options.cluster;
  return job;
}

int run(const Options& options, const Console& console) {
  check(options);
  Report report(console, options.job.json);
  Job job(job_options(options), {PlacerKind::kUlysses, PlacerKind::kBalanced});
  const std::vector<PlacerReplay> replays = replay_all(job, options, console);
  report.text() << describe(job);
  for (const PlacerReplay& replay : replays) report.text() << workers_text(replay);
  TextTable table({"placer", "straggler ms", "predicted", "largest error", "mean worker error",
                   "speed-up", "largest"});
  Json json = job_json(job);
  json["pools_replayed"] = options.pools;
  for (const PlacerReplay& replay : replays) {
    const Comparison c = compare(replay, replays.front());
    const std::string name(placer_name(replay.placer));
    table.add({name, fmt::format("{:.2f}", c.measured_ms), fmt::format("{:.2f}", c.predicted_ms),
               fmt::format("{:.1f}%", 100 * c.worst_error),
               fmt::format("{:.1f}%", 100 * mean_error(replay)),
               fmt::format("{:.2f}", c.speedup_mean), fmt::format("{:.2f}", c.speedup_max)});
    json["placers"][name] = {{"straggler_ms", c.measured_ms},
                             {"predicted_straggler_ms", c.predicted_ms},
                             {"largest_straggler_error", c.worst_error},
                             {"mean_worker_error", mean_error(replay)},
                             {"speedup_mean", c.speedup_mean},
                             {"speedup_max", c.speedup_max},
                             {"workers", workers_json(replay)}};
  }
  report.text() << fmt::format(
      "\n{} pools, computation measured, network of {} modelled; speed-up "
      "over {}\n{}",
      options.pools, options.modelled(), placer_name(replays.front().placer), table.text());
  report.finish(json);
  return kGood;
}

}  // namespace

Command add_replay_command(CLI::App& parent) {
  auto* app = parent.add_subcommand(
      "replay", "Run what every worker of a pool computes, one after the other on a GPU");
  const auto options = std::make_shared<Options>();
  add_job_options(*app, options->job);
  app->get_option("--placer")->default_str("ulysses,balanced");
  add_count(*app, "--pools", options->pools, "Pools to replay, of the first windows");
  add_count(*app, "--rounds", options->rounds, "Times that each worker runs; medians count");
  app->add_option("--device", options->devices,
                  "Which GPUs, as 0,1: each runs a worker at a time (default: 0)")
      ->delimiter(',')
      ->type_name("N");
  app->add_option(
         "--cluster", options->cluster,
         "Whose network is modelled: a preset or a file (default: hgx-h200); if given, plans "
         "with --cost seconds and without --memory-cap are for it")
      ->type_name("NAME|FILE");
  app->footer(kExample);
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
