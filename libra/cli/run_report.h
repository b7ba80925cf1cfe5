// What `libra run` has measured, as text and as JSON: each placer's run, the first one being the
// "before", the last one the "after".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libra/cli/dense_check.h"
#include "libra/cli/job.h"
#include "libra/cli/length_scale.h"
#include "libra/runtime/pool_run.h"

namespace libra::cli {

struct PlacerRun {
  PlacerKind placer = PlacerKind::kNone;
  PoolPlan plan;
  PoolRun result;
  std::optional<OutputErrors> errors;  ///< with --check
};

struct RunSummary {
  std::string backend = "reference";
  std::string transport;
  DType dtype = DType::kFp32;
  LengthScale scale;
  std::int32_t pool = 0;                  ///< of the window
  std::vector<PackedSequence> sequences;  ///< of the pool, not scaled
  std::vector<PlacerPlan> skipped;
  std::vector<PlacerRun> runs;
  std::optional<OutputErrors> allowed;  ///< with --check

  /// What times are of: "CPU" or "GPU".
  std::string clock() const { return backend == "reference" ? "CPU" : "GPU"; }

  /// Whether every output of every run is right, as far as it was checked.
  bool ok() const;
};

/// Throws InternalError unless every worker sent and received what the plan says.
void require_planned_bytes(const PlacerRun& run);

std::string run_text(const RunSummary& summary);

Json run_json(const Job& job, const RunSummary& summary);

}  // namespace libra::cli
