// How long a PoolPlan takes: the plan that the runtime executes, replayed on a device profile and
// on the cluster's links.
//
//   const PoolTimes times = plan_times(environment, plan, {.first_gpu = 64, .step = 3});
//
// Not a second planner: what is computed where, and what travels, is read from the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/pool_plan.h"
#include "libra/sim/attention_times.h"
#include "libra/sim/overlap.h"
#include "libra/sim/scenario.h"

namespace libra {

/// Where and when a pool runs, and how.
struct PoolTurn {
  std::int64_t first_gpu = 0;  ///< of the stage, the GPU of the pool's worker 0
  std::int64_t step = 0;       ///< GA indices since the run began: draws the GPUs' speeds
  bool overlapped = true;      ///< communication under computation
};

/// One call per chunk and one for local work; calls of one chunk that read different tensors count
/// as one. Linear in pieces and moves.
PoolTimes plan_times(const Environment& environment, const PoolPlan& plan, const PoolTurn& turn);

/// When one worker does what, by the same prediction. Each pass counts from its own beginning.
struct WorkerSchedule {
  PassTimeline forward;
  PassTimeline backward;
};

/// By worker, communication under computation.
std::vector<WorkerSchedule> plan_schedule(const Environment& environment, const PoolPlan& plan,
                                          const PoolTurn& turn);

}  // namespace libra
