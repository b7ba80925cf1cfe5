// Saved plans: binary, or JSON if the name ends in .json.
#pragma once

#include <string>
#include <vector>

#include "libra/plan/pool_plan.h"
#include "libra/plan/validate.h"

namespace libra::cli {

/// What a file of this name holds.
std::string encode_plan_file(const PoolPlan& plan, const std::string& path);

/// Either form, told apart by its first bytes. Throws InputError with the path for a file that
/// cannot be read or is no plan.
PoolPlan read_plan_file(const std::string& path);

/// What is wrong with the plan in the file: validate(), and for JSON each field of its `derived`
/// section that does not follow from the plan. Throws as read_plan_file does.
std::vector<Violation> violations_of_file(const std::string& path);

}  // namespace libra::cli
