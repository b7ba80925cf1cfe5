// From sequences to plans under one set of options: the cost that is balanced, and what bounds it.
//
//   const Planning planning(options, "h200", memory_cap, std::nullopt);   // nullopt: FLOPs, no cap
//   const PoolPlan plan = planning.plan(sequences);          // any thread
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libra/cost/cluster.h"
#include "libra/plan/pool_plan.h"

namespace libra::python {

class Planning {
 public:
  /// A cluster (a preset or a file) makes plans for its links and balances its device's seconds;
  /// `gpus`: which of its GPUs the workers are, by worker (empty: its first).
  /// Throws InputError for a profile or cluster that is not there, ConfigError for a cluster with a
  /// memory cap.
  Planning(PlanOptions options, const std::optional<std::string>& device_profile,
           std::optional<std::int64_t> memory_cap, const std::optional<std::string>& cluster,
           const std::vector<std::int32_t>& gpus = {});

  /// Throws ConfigError for options or sequences that break a rule.
  PoolPlan plan(const std::vector<PackedSequence>& sequences) const;

  /// What grouping into pools balances.
  std::int64_t cost(const PackedSequence& sequence) const;

  const PlanOptions& options() const { return options_; }

 private:
  PlanOptions options_;
  ComputeCost cost_;
  std::int32_t cost_heads_;
  std::optional<std::int64_t> memory_cap_;
  std::optional<Cluster> cluster_;
};

}  // namespace libra::python
