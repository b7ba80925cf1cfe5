// What must hold in every simulation, whatever is simulated. All throw InternalError: a broken
// check is a fault of this room, not of the user's. Ports are checked where times are made
// (check_port_rates).
//
// Internal to this room.
#pragma once

#include <vector>

#include "libra/sim/simulate.h"
#include "libra/sim/window_figures.h"

namespace libra {

/// A step-equivalent method computes in every window what `ideal` does.
void check_equal_work(const Method& method, const std::vector<WindowFigures>& windows,
                      const std::vector<WindowFigures>& ideal);

/// No step-equivalent method has shorter stragglers or steps than `ideal`: mean, worst and whole
/// steps. GPUs that happen to be fast may: five standard deviations.
void check_bound(const Cluster& cluster, const MethodFigures& figures, const MethodFigures& ideal);

/// In pools of one replica (P = 1, and whatever P was wished for at DP = 1) grouping only changes
/// the order of sequences: methods that plan and overlap alike move the same bytes, and but for the
/// GPUs' speeds have the same mean straggler.
void check_pools_of_one(const Scenario& scenario, const std::vector<MethodFigures>& methods);

}  // namespace libra
