// Plain attention of whole sequences, written down as the formulas stand: the oracle of every run.
// Slow on purpose; shares no code with the backends.
#pragma once

#include "libra/runtime/worker_run.h"

namespace libra::testing {

/// Forward and backward of one sequence in fp64: causal within each sample; padding rows give O =
/// 0, LSE = -inf and zero gradients. Outputs are fp64, whatever the inputs' dtype.
LayerOutputs dense_attention(const PackedSequence& sequence, const SequenceTensors& inputs,
                             double softmax_scale);

/// The same as a bf16 program computes it: probabilities, score gradients, outputs (but for the
/// LSE) and each query head's share of dK and dV are rounded to bf16, sums are not. Outputs are
/// fp64.
LayerOutputs dense_attention_in_bf16(const PackedSequence& sequence, const SequenceTensors& inputs,
                                     double softmax_scale);

}  // namespace libra::testing
