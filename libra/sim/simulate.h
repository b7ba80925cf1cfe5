// Simulates training steps with every method on the same windows, and says how they compare.
//
//   Simulation simulation = simulate(environment, windows, methods, {});
//   simulation.methods[0].straggler.mean_ms;
//
// A step of core attention is one GA index over all pools. A worker's time is its complete core
// attention of one layer, forward and backward, computation and communication. The straggler is the
// slowest worker; its mean and max are over one window's steps, then averaged over the windows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/methods.h"
#include "libra/sim/pipeline_schedule.h"
#include "libra/sim/scenario.h"

namespace libra {

struct MeanMax {
  double mean_ms = 0;
  double max_ms = 0;
};

/// Of one method, means over the windows unless it says otherwise.
struct MethodFigures {
  const Method* method = nullptr;
  std::string skipped;  ///< why the scenario does not allow it; then nothing else is set

  MeanMax straggler;  ///< forward and backward of one layer
  MeanMax forward;    ///< each pass with its own straggler
  MeanMax backward;
  MeanMax straggler_compute;   ///< computation alone: the slowest worker's
  double exposed_comm_ms = 0;  ///< of the straggler: what is not computation
  double max_over_mean = 0;    ///< slowest worker over the mean worker
  LinkBytes forward_bytes;     ///< of one layer and GA index, all workers
  LinkBytes backward_bytes;
  double step_s = 0;            ///< a whole optimizer step
  double step_s_deviation = 0;  ///< standard deviation over the windows
  double bubble_share = 0;
  double attention_share = 0;  ///< of the step
  double sync_s = 0;
  double tokens = 0;              ///< of samples, in a step
  double tokens_per_gpu_s = 0;    ///< over all windows
  double memory_bytes = 0;        ///< of the fullest GPU, over all windows
  double extra_memory_bytes = 0;  ///< of it, for one layer's exchange

  /// Planning a pool, measured here and now: median over pools, then over windows; 0: no plans.
  double plan_us = 0;

  /// Attention work over that of the windows: less than 1 if samples still wait at the end.
  double work_share = 1;

  double speedup_mean = 0;  ///< Ulysses' straggler over this one; 0 if ulysses cannot run
  double speedup_max = 0;
  double efficiency = 0;  ///< throughput over that of `ideal`

  std::vector<double> step_seconds;  ///< by window
  /// Forward time of a microbatch on the first stage: least, mean and most over all windows.
  double microbatch_min_ms = 0, microbatch_mean_ms = 0, microbatch_max_ms = 0;
  std::vector<std::vector<double>> microbatch_ms;  ///< the same by window
  /// First window, first GA index: total ms of each worker, at most kShownWorkers of them.
  std::vector<double> worker_ms;
  std::vector<std::vector<PipelineOperation>> timeline;  ///< first window, slowest replicas
};

inline constexpr std::size_t kShownWorkers = 256;

struct Simulation {
  std::vector<MethodFigures> methods;  ///< as asked for
};

struct SimulateOptions {
  int threads = 0;                ///< 0: as many as the machine has
  std::function<void()> advance;  ///< called once per (method, window), from any thread
};

/// How many times `advance` will be called.
std::int64_t simulation_tasks(std::size_t windows, const std::vector<const Method*>& methods);

/// `windows`: packed sequences in production order, gbs each. A method that the scenario does not
/// allow is skipped. `ulysses` and `ideal` run in any case, to compare with. Throws InternalError
/// if a figure contradicts what must hold (simulation_checks.h, check_port_rates).
Simulation simulate(const Environment& environment,
                    const std::vector<std::vector<PackedSequence>>& windows,
                    const std::vector<const Method*>& methods, const SimulateOptions& options);

}  // namespace libra
