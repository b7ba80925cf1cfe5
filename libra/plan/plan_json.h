// The JSON form of a plan, for people and other programs (docs/plan_format.md).
//
// It holds what the binary form holds, and for reading also what follows from it: loads, fetches,
// moves, memory. Reading uses the former and derives the latter again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libra/plan/pool_plan.h"

namespace libra {

std::string plan_to_json(const PoolPlan& plan);

/// Throws PlanError for text that is not JSON, lacks a field or holds a wrong one (named), or does
/// not match its fingerprint; ConfigError if the options in it break a rule.
PoolPlan plan_from_json(std::string_view text);

/// The fields of the text's `derived` section that are missing or differ from what follows from the
/// plan. plan_from_json does not read that section, but other programs may. Throws as it does.
std::vector<std::string> wrong_derived_fields(std::string_view text);

}  // namespace libra
