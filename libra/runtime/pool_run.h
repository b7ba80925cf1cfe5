// All workers of a pool in one process, a thread each: forward and backward of one layer on given
// transports.
//
//   auto endpoints = make_inproc_group(plan.workers());
//   const PoolRun run = run_pool(plan, host_sites(endpoints, backend), inputs, softmax_scale);
//   run.sequences[r].o        // of replica r, gathered from its workers
#pragma once

#include <memory>
#include <vector>

#include "libra/runtime/worker_run.h"

namespace libra {

/// What one worker did.
struct WorkerTrace {
  std::vector<Event> events;            ///< its stream, in order
  std::vector<ExchangeRecord> records;  ///< its exchanges, in order of posting
  double busy_seconds = 0;              ///< of its attention, waiting excluded (EventLog)
};

struct PoolRun {
  std::vector<LayerOutputs> sequences;  ///< by replica
  std::vector<WorkerTrace> workers;
};

/// Inputs of every replica, from one seed.
std::vector<SequenceTensors> random_pool_inputs(const PoolPlan& plan, std::uint64_t seed);

/// Blocks until all workers are done. If one fails, the others are told to stop, and its error is
/// thrown. Requires sites[w].transport.worker() == w.
PoolRun run_pool(const PoolPlan& plan, const std::vector<WorkerSite>& sites,
                 const std::vector<SequenceTensors>& inputs, double softmax_scale);

/// All workers on the host, with one backend.
std::vector<WorkerSite> host_sites(const std::vector<std::unique_ptr<Transport>>& endpoints,
                                   AttentionBackend& backend);

}  // namespace libra
