// The binary form of a plan: small enough to broadcast, the same bytes for the same plan
// (docs/plan_format.md).
//
// It holds what was given and what was decided: options, sequences, block costs, destinations. The
// rest is derived again on reading, so a damaged or hostile file cannot contradict itself; it can
// only be a different plan or none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "libra/plan/pool_plan.h"

namespace libra {

std::vector<std::byte> encode_plan(const PoolPlan& plan);

/// Throws PlanError for bytes that are not a plan of this version, are cut short, or whose
/// fingerprint does not match; ConfigError if the options in it break a rule or the pool is above
/// the limits (pool_limits.h). Counts are checked against the bytes that are left before anything
/// is allocated, and so is what would be derived (read_limits.h): a few GB at most, whatever the
/// bytes. The plan is validated (validate.h): what is returned can be run.
PoolPlan decode_plan(std::span<const std::byte> bytes);

}  // namespace libra
