// The bound that no method passes: the window's work divided evenly over all workers and GA
// indices, every sample at the best rate that the profile has for its length, no traffic, no
// launches, no slow GPUs. Its whole steps: least_step_times (step_model.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/attention_times.h"
#include "libra/sim/scenario.h"

namespace libra {

/// [GA index][one pool of all workers]; the work of the whole window is said at GA index 0.
/// `slots`: the window's sequences.
std::vector<std::vector<PoolTimes>> ideal_times(const Environment& environment,
                                                std::span<const PackedSequence> slots);

}  // namespace libra
