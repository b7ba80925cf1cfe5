// What `plan` and `run` share: the same options, and from them a stream of windows, each grouped
// into pools, and the plan options of every placer.
//
//   Job job(options, {PlacerKind::kNone, PlacerKind::kBalanced});
//   JobWindow window = job.next();           // packed sequences and their costs
//   job.sequences(window, assignment.pool(0))
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libra/cli/corpus_options.h"
#include "libra/cli/model_options.h"
#include "libra/cli/pool_options.h"
#include "libra/cost/cluster.h"
#include "libra/cost/device_profile.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_plan.h"

namespace libra::cli {

struct JobOptions {
  CorpusOptions corpus;
  ModelOptions model;
  PoolOptions pool;
  std::string json;
};

/// Every option of JobOptions, the same for both commands.
void add_job_options(CLI::App& app, JobOptions& options);

struct JobWindow {
  std::vector<PackedSequence> sequences;  ///< in production order
  std::int64_t epoch = 0;
};

class Job {
 public:
  /// Reads the corpus; checks all options first. Throws ConfigError and InputError.
  Job(const JobOptions& options, const std::vector<PlacerKind>& default_placers);

  JobWindow next();

  /// Of every sequence of the window, in the unit of --cost.
  std::vector<std::int64_t> costs(const JobWindow& window) const;

  /// --grouping, else refined VRSP; plain VRSP with --faithful.
  Grouping grouping() const;
  /// The pools of a window of these costs, in the order in which they run.
  PoolAssignment group(std::span<const std::int64_t> costs) const;

  /// The plan of these sequences under --memory-cap.
  PoolPlan plan(const PlanOptions& options, std::vector<PackedSequence> sequences) const;

  /// Plan options of every placer; those of skipped ones among them.
  const std::vector<PlacerPlan>& placers() const { return placers_; }
  const JobOptions& options() const { return options_; }
  const ModelShape& model() const { return model_; }
  const Corpus& corpus() const { return *corpus_; }
  const PackingReport& packing() const { return windows_->report(); }

  std::int32_t pools() const { return options_.pool.gbs / options_.pool.pool; }
  std::int32_t pools_at_once() const { return options_.pool.dp / options_.pool.pool; }
  std::int32_t workers() const { return options_.pool.pool * options_.pool.cp; }

 private:
  JobOptions options_;
  ModelShape model_;
  std::vector<PlacerPlan> placers_;
  std::optional<Cluster> cluster_;
  std::shared_ptr<const DeviceProfile> device_;  // null: FLOPs
  ComputeCost cost_;
  std::unique_ptr<const Corpus> corpus_;
  std::unique_ptr<WindowStream> windows_;
};

/// The sequences of one pool.
std::vector<PackedSequence> sequences_of(const JobWindow& window,
                                         std::span<const std::int32_t> pool);

/// What was asked for, for the JSON reports of both commands.
Json job_json(const Job& job);

/// The same for people: corpus, packing, window, workers, model.
std::string describe(const Job& job);

}  // namespace libra::cli
