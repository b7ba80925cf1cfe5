#include "libra/cli/job_environment.h"

namespace libra::cli {

// GPUs of equal speed: what is measured has its own.
Environment environment_of(const Job& job, const std::string& cluster) {
  Scenario scenario;
  scenario.model = job.model();
  scenario.cluster = load_cluster(cluster);
  scenario.cluster.gpu_variation = scenario.cluster.step_variation = 0;
  const JobOptions& options = job.options();
  if (!options.pool.device_profile.empty()) {
    scenario.cluster.device_profile = options.pool.device_profile;
    scenario.cluster.device_speed = 1;
  }
  scenario.seq_tokens = options.corpus.packing.tokens;
  scenario.gbs = options.pool.gbs;
  scenario.dp = options.pool.dp;
  scenario.pool = options.pool.pool;
  scenario.plan = job.placers().front().options;
  return Environment(scenario);
}

}  // namespace libra::cli
