// What a plan should look like in time, by the simulator: shown beside what was measured.
#pragma once

#include <string>
#include <vector>

#include "libra/runtime/trace.h"
#include "libra/sim/plan_times.h"

namespace libra::cli {

/// A track of computation and one of exchange per worker, named as in measured_timeline; backward
/// begins when the last worker's forward pass has ended.
TraceProcess planned_timeline(const std::string& name, const std::vector<WorkerSchedule>& schedule);

}  // namespace libra::cli
