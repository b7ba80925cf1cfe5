// How long DistCA's plan takes (distca_plan.h): the stage's workers are the attention servers.
//
// Communication runs under computation as in DistCA's ping-pong: two halves of the work, one's
// transfers under the other's computation.
#pragma once

#include <cstdint>
#include <span>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/attention_times.h"
#include "libra/sim/scenario.h"

namespace libra {

/// `sequences`: of one GA index, by replica. `step` counts GA indices over the run.
PoolTimes distca_times(const Environment& environment, std::span<const PackedSequence> sequences,
                       double tolerance, std::int64_t step);

}  // namespace libra
