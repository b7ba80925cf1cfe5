// How large the sequences of a pool may be, so that every sum of work, bytes and rows of a plan
// fits into 64 bits and every index into 32. A million tokens, 64 heads and 256 workers are well
// within.
#pragma once

#include <cstdint>
#include <span>

#include "libra/corpus/packed_sequence.h"
#include "libra/plan/plan_options.h"

namespace libra {

/// The largest sum of all tiles' costs, in any unit.
inline constexpr std::int64_t kMaxTotalCost = std::int64_t{1} << 60;

/// Throws ConfigError for a sample of negative length, for samples that are longer than their
/// sequence together, and for a pool above the limits. Requires options that check_options accepts.
void check_sequences(const PlanOptions& options, std::span<const PackedSequence> sequences);

}  // namespace libra
