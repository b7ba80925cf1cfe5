// Runs a pool's plan on the workers of a transport, all of them in this process or one per process.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "libra/runtime/pool_run.h"

namespace libra::cli {

class Executor {
 public:
  virtual ~Executor() = default;

  /// Forward and backward of one layer. On the reporting process the run is complete; elsewhere it
  /// is empty. Times of every worker count from the beginning of the run.
  virtual PoolRun execute(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                          double softmax_scale) = 0;

  /// Whether this process is the one that holds the results.
  virtual bool reports() const = 0;
};

/// All workers as threads of this process, on the CPU.
std::unique_ptr<Executor> make_inproc_executor(std::chrono::milliseconds deadline);

/// All workers as threads of this process, on its GPUs. `transport`: "inproc" (all on one GPU),
/// "peer" (spread over the GPUs) or "nccl" (a GPU each). Every execute runs twice, and what the
/// second one did counts: the first builds graphs. Throws ConfigError if the program was built
/// without the GPU rooms, or there are too few GPUs.
std::unique_ptr<Executor> make_gpu_executor(const std::string& transport, std::int32_t workers,
                                            std::chrono::milliseconds deadline);

/// The steady clock of Timestamp::wall_ns.
std::int64_t now_ns();

/// Takes `origin_ns` off every time of a worker's events and exchanges.
/// Exchanges before the origin (the agreement on the plan, over MPI) are left out.
void shift_times(WorkerTrace& trace, std::int64_t origin_ns);

}  // namespace libra::cli
