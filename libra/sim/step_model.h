// A whole optimizer step: what is around core attention, and the pipeline.
//
// Per layer a microbatch takes core attention, as long as the slowest worker of those that exchange
// in it, then linear layers, and with experts two all-to-alls that end in a barrier of the EP
// group. With recompute the backward pass runs the forward pass again. Replicas that share a pool
// or an EP group wait for each other in every layer, so they share one 1F1B schedule; the others
// meet at the gradient synchronisation, which is not overlapped. Not modelled: the optimizer's own
// computation, the loss, norms and other memory-bound operations beyond linear_tflops, TP
// communication.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/attention_times.h"
#include "libra/sim/pipeline_schedule.h"
#include "libra/sim/scenario.h"

namespace libra {

struct StepTimes {
  double step_s = 0;
  double sync_s = 0;        ///< of it, gradients and parameters
  double bubble_share = 0;  ///< of the slowest group of replicas
  double attention_s = 0;   ///< of the slowest group: core attention of a stage's layers, summed
  std::vector<std::vector<PipelineOperation>> slowest;  ///< its schedule
  /// Forward seconds of each (GA index, group) on the first stage, GA-major.
  std::vector<double> microbatch_forward_s;
};

/// `attention`: as window_times() gives it. `slots`: the window's sequences.
StepTimes step_times(const Environment& environment,
                     const std::vector<std::vector<PoolTimes>>& attention,
                     std::span<const PackedSequence> slots);

/// The least that a step with this work can take: `attention` and `sequence_tokens` (the mean) are
/// those of every worker and GA index, and no stage ever waits for another. No 1F1B schedule of the
/// same work is shorter, however uneven its microbatches; even ones are not the best.
StepTimes least_step_times(const Scenario& scenario, const WorkerTimes& attention,
                           double sequence_tokens);

/// Linear layers of one layer on one GPU, for the tokens of one sequence, forward.
double linear_seconds(const Scenario& scenario, double sequence_tokens);

/// Both all-to-alls of one expert layer, forward; 0 if the model has none.
double expert_exchange_seconds(const Scenario& scenario, double sequence_tokens);

/// Gradients reduced (fp32) and parameters gathered (bf16) over the DP x CP ranks of a stage.
double sync_seconds(const Scenario& scenario);

/// Layers of a stage: the first ones have one more if PP does not divide them.
std::int32_t stage_layers(const Scenario& scenario, std::int32_t stage);

/// Bytes of the fullest GPU (first stage): parameters, gradients, optimizer state over DP x CP,
/// activations of the microbatches in flight (of `sequence_tokens` each), and `extra_bytes` of one
/// layer's exchange.
double memory_bytes(const Scenario& scenario, std::int64_t sequence_tokens, double extra_bytes);

}  // namespace libra
