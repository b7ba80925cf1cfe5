#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cli/gpu_device.h"
#include "libra/cli/gpu_tensors.h"
#include "libra/cli/gpu_work.h"
#include "libra/cli/solo_transport.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/plan/memory_plan.h"
#include "libra/runtime/pipeliner.h"
#include "libra/sim/spread.h"

namespace libra::cli {
namespace {

/// One GPU's stream and backend for a replay.
struct ReplaySeat {
  explicit ReplaySeat(std::int32_t device) : stream(device), attention(device) {}
  CudaStream stream;
  CudnnAttention attention;
  EventLog log;
};

double seconds_of(const EventLog& log, const char* pass) {
  double sum = 0;
  for (const Event& event : log.events()) {
    if (event.name.rfind(pass, 0) != 0) continue;
    sum += static_cast<double>(event.end.wall_ns - event.begin.wall_ns) * 1e-9;
  }
  return sum;
}

ReplayedWorker replay_worker(const PoolPlan& plan, std::int32_t worker, std::int32_t device,
                             int rounds, ReplaySeat& seat) {
  SoloTransport transport(worker, plan.workers(), device);
  WorkerContext context{seat.attention, transport, seat.log};
  Pipeliner pipeliner(plan, context);
  const WorkerMemory& memory = pipeliner.memory();
  transport.reserve_arena(memory.arena.bytes);
  const auto saved = allocate_device(device, memory.saved.bytes);
  const auto scratch = allocate_device(device, memory.scratch.bytes);
  const WorkerProgram& program = pipeliner.program();
  GpuTensors tensors(device, program.rows, program.q_heads, program.kv_heads,
                     plan.options.shape.head_dim);
  const double scale = 1 / std::sqrt(static_cast<double>(plan.options.shape.head_dim));
  std::vector<double> forward, backward;
  while (std::ssize(forward) < rounds) {
    const std::int64_t builds = seat.attention.graph_builds();
    seat.log.clear();
    fill_random(transport.arena(), memory.arena.bytes);
    pipeliner.forward(tensors.forward(), scale, saved.get(), seat.stream);
    pipeliner.backward(tensors.backward(), scale, saved.get(), scratch.get(), seat.stream);
    seat.stream.synchronize();
    if (seat.attention.graph_builds() != builds) continue;  // the host was slower than the GPU
    forward.push_back(seconds_of(seat.log, "forward"));
    backward.push_back(seconds_of(seat.log, "backward"));
  }
  return {median(forward), median(backward)};
}

/// The workers of a plan, for several devices to take from.
struct ReplayQueue {
  const PoolPlan& plan;
  int rounds;
  const OnStep& on_step;
  std::vector<ReplayedWorker> workers;
  std::int32_t next = 0, done = 0;
  std::exception_ptr error = nullptr;
  std::mutex mutex = {};  // guards the four above

  void serve(std::int32_t device) try {
    const DeviceGuard guard(device);
    ReplaySeat seat(device);
    for (std::int32_t worker = take(); worker < plan.workers(); worker = take()) {
      const ReplayedWorker times = replay_worker(plan, worker, device, rounds, seat);
      const std::lock_guard lock(mutex);
      workers[at(worker)] = times;
      on_step(++done, plan.workers());
    }
  } catch (...) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::current_exception();
    next = plan.workers();
  }

  std::int32_t take() {
    const std::lock_guard lock(mutex);
    return next < plan.workers() ? next++ : next;
  }
};

void check_devices(const std::vector<std::int32_t>& devices) {
  for (const std::int32_t device : devices) require_device(device);
  if (std::set<std::int32_t>(devices.begin(), devices.end()).size() == devices.size()) return;
  throw ConfigError("--device names a GPU twice: each runs one worker at a time");
}

}  // namespace

std::vector<ReplayedWorker> replay_workers(const PoolPlan& plan,
                                           const std::vector<std::int32_t>& devices, int rounds,
                                           const OnStep& on_step) {
  check_devices(devices);
  ReplayQueue queue{plan, rounds, on_step, std::vector<ReplayedWorker>(at(plan.workers()))};
  {
    std::vector<std::jthread> threads;
    threads.reserve(devices.size());
    for (const std::int32_t device : devices) {
      threads.emplace_back([&queue, device] { queue.serve(device); });
    }
  }
  if (queue.error) std::rethrow_exception(queue.error);
  return queue.workers;
}

}  // namespace libra::cli
