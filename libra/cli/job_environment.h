// The simulator's view of a job: what its plans are predicted with.
#pragma once

#include <string>

#include "libra/cli/job.h"
#include "libra/sim/scenario.h"

namespace libra::cli {

/// The job on a cluster (a preset or a file) of GPUs of equal speed, with the job's device profile
/// if it names one. Throws ConfigError and InputError.
Environment environment_of(const Job& job, const std::string& cluster);

}  // namespace libra::cli
