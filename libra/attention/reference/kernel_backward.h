// dQ, dK and dV of every entry of a call, on the calling thread. Probabilities are recomputed tile
// by tile from the scores and the given LSE, so memory does not grow with queries x keys. Gradients
// that are written are summed in memory of one entry's size first, and rounded once.
#pragma once

#include "libra/attention/attention.h"

namespace libra::reference {

/// Requires a call and tensors that check_backward (checks.h) accepts. Complexity: 3 d_qk + 2 d_v
/// multiply-adds for each visible (query, key, head), rounded up to tiles of
/// 128 rows x 64 keys.
void run_backward(const AttentionCall& call, const BackwardTensors& tensors);

}  // namespace libra::reference
