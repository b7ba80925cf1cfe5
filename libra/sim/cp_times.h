// Context parallelism without a plan: how long a sequence's CP group takes for core attention.
//
//   ring_times       every document cut in 2 CP chunks, rank r has chunks r and 2 CP - 1 - r;
//                    keys and values go round in CP steps, each under the computation of the one
//                    before
//   gathered_times   all keys and values gathered first (WLB-LLM): per-document shards as above, or
//                    per-sequence shards, chunks r and 2 CP - 1 - r of the whole sequence;
//                    whichever is predicted faster
//
// Attention runs in calls of q_heads / H heads, as in the methods that have H, so that all run at
// the rates of the same profile's heads.
#pragma once

#include <cstdint>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/attention_times.h"
#include "libra/sim/scenario.h"

namespace libra {

/// Where and when a sequence's CP group runs.
struct CpRun {
  std::int64_t first_gpu = 0;
  std::int64_t step = 0;
};

PoolTimes ring_times(const Environment& environment, const PackedSequence& sequence,
                     const CpRun& run);

PoolTimes gathered_times(const Environment& environment, const PackedSequence& sequence,
                         const CpRun& run);

}  // namespace libra
