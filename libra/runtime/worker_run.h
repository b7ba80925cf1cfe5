// One worker's forward and backward over given tensors, on whatever transport, backend and memory
// it is given: what `libra run`, the tests and a first reader use to see a plan work.
//
//   SequenceTensors inputs = random_inputs(plan, replica, seed);
//   WorkerRun run(plan, {transport, backend});        // SPMD: on every worker
//   run.execute(inputs, softmax_scale);               // blocks until done; throws what went wrong
//   run.outputs(), run.log(), run.records()
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/runtime/memory_space.h"
#include "libra/runtime/pipeliner.h"

namespace libra {

/// Of one whole sequence: Q, dO [tokens, q_heads, d]; K, V [tokens, kv_heads, d].
struct SequenceTensors {
  HostTensor q, k, v, d_o;
};

/// Standard normal values that depend on (seed, replica) and the shapes alone: every worker of a
/// sequence's CP group makes the same ones.
SequenceTensors random_inputs(const PoolPlan& plan, std::int32_t replica, std::uint64_t seed);

/// Of one worker, or of a whole sequence once gathered.
struct LayerOutputs {
  HostTensor o, lse, dq, dk, dv;
};

/// Empty outputs of a whole sequence, to gather into.
LayerOutputs sequence_outputs(const PoolPlan& plan, std::int32_t replica);

/// Writes a worker's outputs to their tokens and heads.
void gather_outputs(const PoolPlan& plan, std::int32_t worker, const LayerOutputs& own,
                    LayerOutputs& sequence);

/// Where a worker runs. Nothing here is owned.
struct WorkerSite {
  Transport& transport;
  AttentionBackend& attention;
  const MemorySpace& memory = host_memory();
  /// Equal on all workers. Where runs follow each other on one transport: the last one's
  /// next_step().
  std::int32_t first_step = 0;
  WholeLimits whole_limits = {};  ///< as in WorkerContext
};

class WorkerRun {
 public:
  /// Agrees with the pool on the plan and reserves the arena: every worker of the pool must
  /// construct its own. Throws PlanError if another worker has another plan.
  WorkerRun(const PoolPlan& plan, const WorkerSite& site);

  /// `sequence`: of this worker's replica. Runs one layer forward and backward and waits for it.
  void execute(const SequenceTensors& sequence, double softmax_scale);

  /// The first step number that this run has not used.
  std::int32_t next_step() const { return context_.next_step; }

  const LayerOutputs& outputs() const { return outputs_; }
  const EventLog& log() const { return log_; }
  const std::vector<ExchangeRecord>& records() const { return records_; }

 private:
  void synchronize() const;

  const PoolPlan& plan_;
  WorkerSite site_;
  EventLog log_;
  WorkerContext context_;
  LayerOutputs outputs_;
  std::vector<ExchangeRecord> records_;
  std::unique_ptr<Stream> stream_, relays_;  // below what their work uses
  Pipeliner pipeliner_;
};

}  // namespace libra
