// The checks behind validate() (validate.h), one per stage of a plan. Each adds what it finds and
// may rely on those before it having found nothing; none reads out of bounds whatever the numbers.
#pragma once

#include <vector>

#include "libra/plan/token_homes.h"
#include "libra/plan/validate.h"

namespace libra {

using Violations = std::vector<Violation>;

void check_inputs(const PoolPlan& plan, Violations& violations);
void check_homes(const PoolPlan& plan, Violations& violations);
void check_tiles(const PoolPlan& plan, const TokenHomes& homes, Violations& violations);
void check_placement(const PoolPlan& plan, Violations& violations);
void check_exchange(const PoolPlan& plan, const TokenHomes& homes, Violations& violations);

}  // namespace libra
