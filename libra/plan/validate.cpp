#include "libra/plan/validate.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/plan/plan_checks.h"

namespace libra {

std::vector<Violation> validate(const PoolPlan& plan) {
  Violations violations;
  check_inputs(plan, violations);
  if (!violations.empty()) return violations;
  check_homes(plan, violations);
  if (!violations.empty()) return violations;
  const TokenHomes homes(plan.layout);
  check_tiles(plan, homes, violations);
  if (!violations.empty()) return violations;
  check_placement(plan, violations);
  if (!violations.empty()) return violations;
  check_exchange(plan, homes, violations);
  return violations;
}

void require_valid(const PoolPlan& plan) {
  const std::vector<Violation> violations = validate(plan);
  if (violations.empty()) return;
  throw PlanError(fmt::format("the plan breaks its promise '{}' ({}), {} violations in all",
                              violations[0].rule, violations[0].detail, violations.size()));
}

}  // namespace libra
