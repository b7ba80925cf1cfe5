// The JSON of `libra simulate` (docs/cli.md lists its fields).
#pragma once

#include "libra/cli/report.h"
#include "libra/cli/sim_options.h"
#include "libra/sim/simulate.h"

namespace libra::cli {

Json simulation_json(const Scenario& scenario, const SimOptions& options, const Corpus& corpus,
                     const SimWindows& windows, const Simulation& simulation);

}  // namespace libra::cli
