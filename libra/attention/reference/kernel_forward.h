// O and LSE of every entry of a call, on the calling thread, by blocked online softmax (Milakov and
// Gimelshein 2018; Rabe and Staats 2021): memory does not grow with queries x keys.
#pragma once

#include "libra/attention/attention.h"

namespace libra::reference {

/// Requires a call and tensors that check_forward (checks.h) accepts. Complexity: d_qk + d_v
/// multiply-adds for each visible (query, key, head), rounded up to tiles of
/// 128 rows x 64 keys.
void run_forward(const AttentionCall& call, const ForwardTensors& tensors);

}  // namespace libra::reference
