// What balancing brings on real GPUs: the pools of a few windows, forward and backward of one
// layer, one GPU a worker, method by method, beside what the simulator predicts.
//
//   pool_times --corpus data/mix.npy --seq-len 128K --windows 4 --transport peer
//
// Prints JSON lines. Ideal is 1/W of the kernel time of all workers under the first method, `none`
// unless --methods says otherwise, in the same run.
// Before anything is timed, graphs and buffers are made for every pool, and each method runs its
// first one. A pool's first layer is not timed either, since it prepares what the later ones only
// enqueue; of the timed rounds, each pool's median counts.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>

#include "benchmarks/gpu/pool_methods.h"
#include "benchmarks/gpu/pool_worker.h"
#include "libra/base/index.h"
#include "libra/cuda/device.h"
#include "libra/plan/traffic.h"
#include "libra/transport/nccl/nccl_transport.h"
#include "libra/transport/peer/peer_group.h"
#include "libra/transport/peer/peer_process.h"
#include "tests/crew.h"

namespace libra {
namespace {

struct Options {
  PoolStudy study;
  std::string transport = "peer";
  bool one_queue = false;
  std::int32_t rounds = 1;
  std::int64_t scratch_mb = 2048;
  std::int32_t host_layers = 4;
};

/// What the workers write for all to read.
struct Board {
  Board(std::size_t plans, const Options& options)
      : workers(at(options.study.workers())),
        rounds(at(options.rounds)),
        times(plans * rounds * workers),
        builds(workers),
        memory(workers) {}
  PassTimes& at_place(std::size_t plan, std::size_t round, std::size_t worker) {
    return times[(plan * rounds + round) * workers + worker];
  }

  std::size_t workers, rounds;
  SharedArray<PassTimes> times;
  SharedArray<std::int64_t> builds;
  SharedArray<ExtraMemory> memory;
};

/// Makes every worker's endpoint: in its own process, or all of them before the threads start.
class Endpoints {
 public:
  explicit Endpoints(const Options& options)
      : options_(options), name_(fmt::format("pool-times-{}", getpid())) {
    if (in_processes()) return;
    std::vector<std::int32_t> devices(at(options.study.workers()));
    std::iota(devices.begin(), devices.end(), 0);
    if (options.transport == "nccl") {
      group_ = make_nccl_group(devices, {});
    } else {
      for (std::int32_t& device : devices) device %= std::max(1, device_count());
      group_ = make_peer_group(devices, {});
    }
  }

  bool in_processes() const { return options_.transport == "peer"; }

  std::unique_ptr<Transport> take(std::int32_t worker, std::int32_t device) {
    if (!in_processes()) return std::move(group_[at(worker)]);
    return make_peer_process({name_, worker, options_.study.workers(), device, options_.one_queue},
                             {});
  }

 private:
  const Options& options_;
  std::string name_;
  std::vector<std::unique_ptr<Transport>> group_;
};

std::vector<const PoolPlan*> all_plans(const std::vector<MethodPlans>& methods) {
  std::vector<const PoolPlan*> plans;
  for (const MethodPlans& method : methods) {
    for (const PoolPlan& plan : method.plans) plans.push_back(&plan);
  }
  return plans;
}

void run_worker(std::int32_t worker, const std::vector<MethodPlans>& methods,
                const Options& options, Endpoints& endpoints, Crew& crew, Board& board) {
  const std::int32_t device = worker % device_count();
  const DeviceGuard guard(device);
  PoolWorker player(endpoints.take(worker, device), device, options.scratch_mb << 20,
                    options.host_layers);
  const std::vector<const PoolPlan*> plans = all_plans(methods);
  player.allocate(plans);
  const auto together = [&crew] { crew.together(); };
  for (const PoolPlan* plan : plans) player.prepare(*plan);
  for (const MethodPlans& method : methods) player.run(method.plans.front(), 1, together);
  const std::int64_t before = player.graph_builds();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::vector<PassTimes> layers = player.run(*plans[i], board.rounds + 1, together);
    for (std::size_t round = 0; round < board.rounds; ++round) {
      board.at_place(i, round, at(worker)) = layers[round + 1];
    }
  }
  board.builds[at(worker)] = player.graph_builds() - before;
  board.memory[at(worker)] = player.extra_memory();
  crew.together();  // nobody leaves while another still reads from it
}

/// One pool in the round whose slowest worker is the median one.
struct PoolResult {
  double slowest_ms = 0;
  double kernels_ms = 0;    ///< of all workers
  double exposed_ms = 0;    ///< the slowest worker's time outside its kernels
  PassTimes host;           ///< the host times of the worker whose layers in a row took the longest
  double idle_host_us = 0;  ///< the longest
};

PoolResult result_of(Board& board, std::size_t plan, std::size_t round) {
  PoolResult result;
  for (std::size_t worker = 0; worker < board.workers; ++worker) {
    const PassTimes& times = board.at_place(plan, round, worker);
    result.kernels_ms += times.kernels_ms();
    if (times.host_us > result.host.host_us) result.host = times;
    result.idle_host_us = std::max(result.idle_host_us, times.idle_host_us);
    if (times.total_ms() < result.slowest_ms) continue;
    result.slowest_ms = times.total_ms();
    result.exposed_ms = times.total_ms() - times.kernels_ms();
  }
  return result;
}

PoolResult median_result(Board& board, std::size_t plan) {
  std::vector<PoolResult> rounds;
  for (std::size_t round = 0; round < board.rounds; ++round) {
    rounds.push_back(result_of(board, plan, round));
  }
  const auto middle = rounds.begin() + std::ssize(rounds) / 2;
  std::nth_element(rounds.begin(), middle, rounds.end(),
                   [](const auto& a, const auto& b) { return a.slowest_ms < b.slowest_ms; });
  return *middle;
}

/// What a method did in all pools.
struct Totals {
  double slowest_ms = 0, kernels_ms = 0, exposed_ms = 0, worst_pool_ms = 0, predicted_ms = 0;
  /// Means over the pools.
  double host_us = 0, idle_host_us = 0, host_attention_us = 0, host_exchange_us = 0;
  double worst_prediction = 0;  ///< relative, of one pool
  std::int64_t bytes = 0;
  std::vector<double> pool_ms;
};

Totals totals_of(const MethodPlans& method, Board& board, std::size_t first_plan) {
  Totals totals;
  const auto pools = static_cast<double>(method.plans.size());
  for (std::size_t i = 0; i < method.plans.size(); ++i) {
    const PoolResult pool = median_result(board, first_plan + i);
    totals.slowest_ms += pool.slowest_ms;
    totals.kernels_ms += pool.kernels_ms;
    totals.exposed_ms += pool.exposed_ms;
    totals.worst_pool_ms = std::max(totals.worst_pool_ms, pool.slowest_ms);
    totals.predicted_ms += method.predicted_ms[i];
    totals.worst_prediction =
        std::max(totals.worst_prediction, std::abs(method.predicted_ms[i] / pool.slowest_ms - 1));
    totals.host_us += pool.host.host_us / pools;
    totals.idle_host_us += pool.idle_host_us / pools;
    totals.host_attention_us += pool.host.host_attention_us / pools;
    totals.host_exchange_us += pool.host.host_exchange_us / pools;
    totals.bytes +=
        forward_traffic(method.plans[i]).total() + backward_traffic(method.plans[i]).total();
    totals.pool_ms.push_back(pool.slowest_ms);
  }
  return totals;
}

// Pool by pool over the baseline; only where both run the same pools.
std::pair<double, double> speedups(const Totals& totals, const Totals& baseline) {
  double mean = 0, most = 0;
  for (std::size_t i = 0; i < totals.pool_ms.size(); ++i) {
    const double speedup = baseline.pool_ms[i] / totals.pool_ms[i];
    mean += speedup / static_cast<double>(totals.pool_ms.size());
    most = std::max(most, speedup);
  }
  return {mean, most};
}

/// In all, and pool by pool: its mean and largest.
std::string speedup_fields(const std::string& over, const Totals& totals, const Totals& baseline) {
  const auto [mean, most] = speedups(totals, baseline);
  return fmt::format(
      "\"speedup_over_{0}\": {1:.3f}, \"mean_speedup_over_{0}\": {2:.3f}, "
      "\"max_speedup_over_{0}\": {3:.3f}",
      over, baseline.slowest_ms / totals.slowest_ms, mean, most);
}

/// Over the first method, and over `ulysses` where it is another one of them.
std::string speedup_fields(const std::vector<MethodPlans>& methods,
                           const std::vector<Totals>& totals, std::size_t method) {
  std::string fields = speedup_fields(methods.front().name, totals[method], totals.front());
  for (std::size_t m = 1; m < methods.size(); ++m) {
    if (methods[m].name != "ulysses") continue;
    fields += ", " + speedup_fields(methods[m].name, totals[method], totals[m]);
  }
  return fields;
}

/// What was measured of the host.
std::string host_fields(const Totals& totals, bool in_a_row) {
  std::string fields = fmt::format("\"idle_host_us\": {:.0f}", totals.idle_host_us);
  if (in_a_row) {
    fields += fmt::format(
        ", \"host_us\": {:.0f}, \"host_attention_us\": {:.0f}, \"host_exchange_us\": {:.0f}",
        totals.host_us, totals.host_attention_us, totals.host_exchange_us);
  }
  return fields;
}

void print(const std::vector<MethodPlans>& methods, Board& board, const Options& options) {
  std::vector<Totals> totals;
  std::size_t first_plan = 0;
  for (const MethodPlans& method : methods) {
    totals.push_back(totals_of(method, board, first_plan));
    first_plan += method.plans.size();
  }
  const PoolStudy& study = options.study;
  const Totals& none = totals.front();
  const double ideal = none.kernels_ms / study.workers();
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const Totals& t = totals[m];
    fmt::print(
        "{{\"corpus\": \"{}\", \"seq_len\": \"{}\", \"pool\": {}, \"cp\": {}, \"transport\": "
        "\"{}\", \"method\": \"{}\", \"pools\": {}, \"slowest_ms\": {:.2f}, \"over_ideal\": "
        "{:.4f}, \"exposed_share\": {:.4f}, \"kernels_over_none\": {:.4f}, \"predicted_ms\": "
        "{:.2f}, \"prediction_error\": {:.4f}, \"worst_pool_prediction_error\": {:.4f}, "
        "{}, \"mean_pool_ms\": {:.2f}, \"worst_pool_ms\": {:.2f}, \"gb\": {:.2f}, {}}}\n",
        study.corpus, study.seq_len, study.pool, study.cp, options.transport, methods[m].name,
        t.pool_ms.size(), t.slowest_ms, t.slowest_ms / ideal, t.exposed_ms / t.slowest_ms,
        t.kernels_ms / none.kernels_ms, t.predicted_ms, t.predicted_ms / t.slowest_ms - 1,
        t.worst_prediction, speedup_fields(methods, totals, m),
        t.slowest_ms / static_cast<double>(t.pool_ms.size()), t.worst_pool_ms,
        static_cast<double>(t.bytes) * 1e-9, host_fields(t, options.host_layers > 0));
  }
  std::int64_t builds = 0;
  for (std::size_t worker = 0; worker < board.workers; ++worker) builds += board.builds[worker];
  const ExtraMemory& memory = board.memory[0];
  fmt::print(
      "{{\"graph_builds_while_timed\": {}, \"own_mb\": {}, \"extra_planned_mb\": {}, "
      "\"extra_measured_mb\": {}, \"attention_scratch_mb\": {}}}\n",
      builds, memory.own >> 20, memory.planned >> 20, memory.measured >> 20,
      memory.attention >> 20);
}

void run(const Options& options) {
  const std::vector<MethodPlans> methods = plan_methods(options.study);
  Board board(all_plans(methods).size(), options);
  Endpoints endpoints(options);
  Crew crew(endpoints.in_processes() ? Crew::Kind::kProcesses : Crew::Kind::kThreads,
            options.study.workers());
  crew.run(
      [&](std::int32_t worker) { run_worker(worker, methods, options, endpoints, crew, board); });
  print(methods, board, options);
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  libra::Options options;
  libra::PoolStudy& study = options.study;
  CLI::App app("Times pools on GPUs, forward and backward, method by method");
  app.add_option("--corpus", study.corpus);
  app.add_option("--seq-len", study.seq_len);
  app.add_option("--model", study.model);
  app.add_option("--profile", study.profile, "Device profile: a name or a file");
  app.add_option("--cluster", study.cluster, "For the prediction: a preset or a file");
  app.add_option("--pool", study.pool);
  app.add_option("--cp", study.cp);
  app.add_option("--gbs", study.gbs, "Sequences of a window");
  app.add_option("--windows", study.windows)->check(CLI::PositiveNumber);
  app.add_option("--tau-ppm", study.tau_ppm);
  app.add_option("--block", study.block);
  app.add_option("--head-shards", study.head_shards);
  app.add_option("--seed", study.seed);
  app.add_option("--methods", study.methods, "The first one is the baseline")->delimiter(',');
  app.add_option("--rounds", options.rounds, "Timed rounds")->check(CLI::PositiveNumber);
  app.add_option("--scratch-mb", options.scratch_mb, "Bound of the attention backend's scratch")
      ->check(CLI::PositiveNumber);
  app.add_option("--host-layers", options.host_layers, "In a row, to time the host; 0: not at all")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--one-queue", options.one_queue, "peer: the order that is right on one queue");
  app.add_option("--transport", options.transport, "peer: processes; threads; nccl")
      ->check(CLI::IsMember({"peer", "threads", "nccl"}));
  CLI11_PARSE(app, argc, argv);
  try {
    libra::run(options);
  } catch (const libra::Error& error) {
    std::cerr << "pool_times: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
