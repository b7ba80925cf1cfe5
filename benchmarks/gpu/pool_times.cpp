// What balancing brings on real GPUs: the pools of a few windows, forward and backward of one
// layer, one thread and one GPU a worker, under every method in turn.
//
//   pool_times --corpus data/mix.npy --seq-len 128K --pools 32
//
// Prints JSON lines. A worker's time is that of its stream from the pass's first work to its last;
// ideal is half (1/W) of the kernel time of all workers under `none`, in the same run. Every pool
// is run once before anything is timed, so that graphs and buffers exist.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <barrier>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <thread>

#include "benchmarks/study_windows.h"
#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/cli/gpu_tensors.h"
#include "libra/cost/device_profile.h"
#include "libra/cost/model_shape.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/traffic.h"
#include "libra/runtime/pipeliner.h"
#include "libra/transport/peer/peer_group.h"

namespace libra {
namespace {

struct Options {
  std::string corpus = "data/mix.npy";
  std::string seq_len = "128K";
  std::string model = "qwen3-8b";
  std::string profile = "h200";
  std::int32_t pool = 2;
  std::int32_t cp = 1;
  std::int32_t gbs = 16;
  std::int32_t pools = 32;
  std::int32_t tau_ppm = 5'000;
  std::int64_t block = 4096;
  std::int32_t head_shards = 2;
  std::uint64_t seed = 1;
  std::vector<std::string> methods;
};

/// A way to plan and run a pool.
struct Method {
  std::string name;
  PlanOptions options;
  PieceCost cost;
};

std::vector<Method> all_methods(const Options& options, const AttentionShape& shape) {
  const PieceCost seconds = seconds_cost(
      std::make_shared<const DeviceProfile>(load_device_profile(options.profile).for_shape(shape)));
  PlanOptions base;
  base.shape = shape;
  base.cp = options.cp;
  base.block_tokens = options.block;
  base.head_shards = options.head_shards;
  base.tau_ppm = options.tau_ppm;
  const auto with = [&base](const std::function<void(PlanOptions&)>& change) {
    PlanOptions changed = base;
    change(changed);
    return changed;
  };
  return {
      {"none", with([](PlanOptions& o) { o.placer = PlacerKind::kNone; }), seconds},
      {"ulysses", with([](PlanOptions& o) {
         o.placer = PlacerKind::kUlysses;
         o.head_shards = o.cp;
       }),
       seconds},
      {"libra", base, seconds},
      {"one-chunk", with([](PlanOptions& o) { o.chunks = 1; }), seconds},
      {"flops", base, flops_cost},
      {"refetch", with([](PlanOptions& o) { o.backward = BackwardMode::kRefetch; }), seconds},
      {"faithful", faithful(base), flops_cost},
  };
}

/// A worker's GPU: everything that a run needs, allocated once at the largest size.
class Worker {
 public:
  Worker(Transport& transport, std::int32_t device)
      : transport_(transport), device_(device), stream_(device), attention_(device) {}

  void allocate(const std::vector<PoolPlan>& plans) {
    std::int64_t saved = 0, scratch = 0, arena = 0, rows = 0;
    for (const PoolPlan& plan : plans) {
      const WorkerMemory memory = plan_memory(plan)[at(transport_.worker())];
      saved = std::max(saved, memory.saved.bytes);
      scratch = std::max(scratch, memory.scratch.bytes);
      arena = std::max(arena, max_arena_bytes(plan));
      rows = std::max(rows, plan.layout.part_of(transport_.worker()).rows);
    }
    transport_.reserve_arena(arena);
    saved_ = allocate_device(device_, saved);
    scratch_ = allocate_device(device_, scratch);
    const AttentionShape& shape = plans.front().options.shape;
    tensors_ = std::make_unique<cli::GpuTensors>(device_, rows, shape.q_heads, shape.kv_heads,
                                                 shape.head_dim);
  }

  struct Times {
    double forward_ms = 0, backward_ms = 0;  ///< of the stream
    double forward_kernels_ms = 0, backward_kernels_ms = 0;
    double forward_host_us = 0, backward_host_us = 0;
    double total_ms() const { return forward_ms + backward_ms; }
    double kernels_ms() const { return forward_kernels_ms + backward_kernels_ms; }
  };

  Times run(const PoolPlan& plan, std::barrier<>& together) {
    WorkerContext context{attention_, transport_, log_, next_step_};
    Pipeliner pipeliner(plan, context);
    log_.clear();
    const std::int64_t rows = pipeliner.program().rows;
    const double scale = 1 / std::sqrt(static_cast<double>(plan.options.shape.head_dim));
    Timestamp begin, middle, end;
    together.arrive_and_wait();
    Times times;
    stream_.mark(&begin);
    times.forward_host_us =
        host_us([&] { pipeliner.forward(tensors_->forward(rows), scale, saved_.get(), stream_); });
    stream_.mark(&middle);
    times.backward_host_us = host_us([&] {
      pipeliner.backward(tensors_->backward(rows), scale, saved_.get(), scratch_.get(), stream_);
    });
    stream_.mark(&end);
    stream_.synchronize();
    next_step_ = context.next_step;
    times.forward_ms = milliseconds(begin, middle);
    times.backward_ms = milliseconds(middle, end);
    for (const Event& event : log_.events()) {
      const bool forward = event.name.rfind("forward", 0) == 0;
      (forward ? times.forward_kernels_ms : times.backward_kernels_ms) +=
          milliseconds(event.begin, event.end);
    }
    transport_.take_records();
    return times;
  }

  std::int64_t graph_builds() const { return attention_.graph_builds(); }

 private:
  static double milliseconds(const Timestamp& begin, const Timestamp& end) {
    return static_cast<double>(end.wall_ns - begin.wall_ns) * 1e-6;
  }
  template <typename Body>
  static double host_us(const Body& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
  }

  Transport& transport_;
  std::int32_t device_;
  CudaStream stream_;
  CudnnAttention attention_;
  EventLog log_;
  std::int32_t next_step_ = 0;
  std::unique_ptr<cli::GpuTensors> tensors_;
  std::shared_ptr<std::byte> saved_, scratch_;
};

std::vector<std::vector<PackedSequence>> vrsp_pools(const Options& options) {
  const std::int32_t per_window = options.gbs / options.pool;
  const int windows = (options.pools + per_window - 1) / per_window;
  std::vector<std::vector<PackedSequence>> pools;
  for (const auto& window : study_windows(options.corpus, parse_size(options.seq_len), options.gbs,
                                          windows, options.seed)) {
    std::vector<std::int64_t> costs;
    costs.reserve(window.size());
    for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
    const PoolAssignment assignment = assign_pools(costs, options.pool, Grouping::kVrsp);
    for (std::int32_t k = 0; k < assignment.pools() && std::ssize(pools) < options.pools; ++k) {
      auto& pool = pools.emplace_back();
      for (const std::int32_t index : assignment.pool(k)) pool.push_back(window[at(index)]);
    }
  }
  return pools;
}

/// What a method did in all pools.
struct Totals {
  double slowest_ms = 0;  ///< sum over the pools of the slowest worker's time
  double mean_ms = 0;     ///< of the mean worker's
  double kernels_ms = 0;  ///< sum over pools and workers
  double exposed_ms = 0;  ///< sum over pools: the slowest worker's time outside its kernels
  double worst_pool_ms = 0;
  double host_forward_us = 0;  ///< sum over pools, of the slowest worker
  std::vector<double> pool_ms;
  std::int64_t bytes = 0;
};

void add(Totals& totals, const std::vector<Worker::Times>& times) {
  const auto slowest =
      std::max_element(times.begin(), times.end(),
                       [](const auto& a, const auto& b) { return a.total_ms() < b.total_ms(); });
  totals.slowest_ms += slowest->total_ms();
  totals.exposed_ms += slowest->total_ms() - slowest->kernels_ms();
  totals.worst_pool_ms = std::max(totals.worst_pool_ms, slowest->total_ms());
  totals.pool_ms.push_back(slowest->total_ms());
  double host = 0;
  for (const Worker::Times& worker : times) {
    totals.kernels_ms += worker.kernels_ms();
    totals.mean_ms += worker.total_ms() / static_cast<double>(times.size());
    host = std::max(host, worker.forward_host_us);
  }
  totals.host_forward_us += host;
}

std::int64_t bytes_moved(const PoolPlan& plan) {
  return forward_traffic(plan).total() + backward_traffic(plan).total();
}

// Runs every plan of every method, pool by pool, on all workers; the timed round is the second.
std::map<std::string, Totals> run_all(const std::vector<Method>& methods,
                                      const std::vector<PoolPlan>& plans, std::int32_t workers) {
  std::vector<std::int32_t> devices(at(workers));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i] = static_cast<std::int32_t>(i) % device_count();
  }
  auto endpoints = make_peer_group(devices, {});
  std::barrier<> together(workers);
  std::vector<std::vector<Worker::Times>> times(plans.size(),
                                                std::vector<Worker::Times>(at(workers)));
  std::vector<std::int64_t> builds(at(workers));
  std::vector<std::jthread> threads;
  threads.reserve(at(workers));
  for (std::size_t w = 0; w < at(workers); ++w) {
    threads.emplace_back([&, w] {
      const DeviceGuard guard(devices[w]);
      Worker worker(*endpoints[w], devices[w]);
      worker.allocate(plans);
      for (const PoolPlan& plan : plans) worker.run(plan, together);
      const std::int64_t before = worker.graph_builds();
      for (std::size_t i = 0; i < plans.size(); ++i) times[i][w] = worker.run(plans[i], together);
      builds[w] = worker.graph_builds() - before;
    });
  }
  threads.clear();
  std::map<std::string, Totals> totals;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Totals& method = totals[methods[i % methods.size()].name];
    add(method, times[i]);
    method.bytes += bytes_moved(plans[i]);
  }
  fmt::print("{{\"graph_builds_while_timed\": {}}}\n",
             std::accumulate(builds.begin(), builds.end(), std::int64_t{0}));
  return totals;
}

void print(const std::vector<Method>& methods, std::map<std::string, Totals>& totals,
           const Options& options) {
  const double workers = options.pool * options.cp;
  const Totals& none = totals.at("none");
  const double ideal = none.kernels_ms / workers;
  for (const Method& method : methods) {
    const Totals& t = totals.at(method.name);
    double mean_speedup = 0, max_speedup = 0;
    for (std::size_t i = 0; i < t.pool_ms.size(); ++i) {
      const double speedup = none.pool_ms[i] / t.pool_ms[i];
      mean_speedup += speedup / static_cast<double>(t.pool_ms.size());
      max_speedup = std::max(max_speedup, speedup);
    }
    fmt::print(
        "{{\"method\": \"{}\", \"seq_len\": \"{}\", \"pools\": {}, \"slowest_ms\": {:.2f}, "
        "\"over_ideal\": {:.4f}, \"exposed_share\": {:.4f}, \"kernels_over_none\": {:.4f}, "
        "\"total_speedup_over_none\": {:.3f}, \"mean_speedup\": {:.3f}, \"max_speedup\": {:.3f}, "
        "\"worst_pool_ms\": {:.2f}, \"bytes\": {}, \"host_forward_us\": {:.0f}}}\n",
        method.name, options.seq_len, t.pool_ms.size(), t.slowest_ms, t.slowest_ms / ideal,
        t.exposed_ms / t.slowest_ms, t.kernels_ms / none.kernels_ms, none.slowest_ms / t.slowest_ms,
        mean_speedup, max_speedup, t.worst_pool_ms, t.bytes,
        t.host_forward_us / static_cast<double>(t.pool_ms.size()));
  }
}

void run(const Options& options) {
  const AttentionShape shape = find_model(options.model).attention;
  std::vector<Method> methods = all_methods(options, shape);
  if (!options.methods.empty()) {
    std::erase_if(methods, [&](const Method& method) {
      return std::find(options.methods.begin(), options.methods.end(), method.name) ==
             options.methods.end();
    });
  }
  std::vector<PoolPlan> plans;
  for (const auto& pool : vrsp_pools(options)) {
    for (const Method& method : methods) {
      plans.push_back(make_plan(method.options, pool, method.cost));
    }
  }
  auto totals = run_all(methods, plans, options.pool * options.cp);
  print(methods, totals, options);
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  libra::Options options;
  CLI::App app("Times pools on GPUs, forward and backward, method by method");
  app.add_option("--corpus", options.corpus);
  app.add_option("--seq-len", options.seq_len);
  app.add_option("--model", options.model);
  app.add_option("--profile", options.profile);
  app.add_option("--pool", options.pool);
  app.add_option("--cp", options.cp);
  app.add_option("--gbs", options.gbs);
  app.add_option("--pools", options.pools);
  app.add_option("--tau-ppm", options.tau_ppm);
  app.add_option("--block", options.block);
  app.add_option("--head-shards", options.head_shards);
  app.add_option("--seed", options.seed);
  app.add_option("--methods", options.methods)->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    libra::run(options);
  } catch (const libra::Error& error) {
    std::cerr << "pool_times: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
