#include "libra/cli/job.h"

#include <fmt/format.h>

#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/base/version.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/text_table.h"
#include "libra/plan/cluster_plan.h"
#include "libra/plan/memory_plan.h"

namespace libra::cli {
namespace {

WindowOptions window_options(const JobOptions& options) {
  WindowOptions windows;
  windows.sequences = options.pool.gbs;
  windows.packing = options.corpus.packing;
  windows.order = options.corpus.order;
  windows.seed = options.corpus.seed;
  return windows;
}

std::shared_ptr<const DeviceProfile> load_device(const JobOptions& options,
                                                 const std::optional<Cluster>& cluster,
                                                 const AttentionShape& shape) {
  if (!options.pool.seconds) return nullptr;
  if (options.corpus.packing.tokens > DeviceProfile::kMaxSampleTokens) {
    throw ConfigError(fmt::format("--seq-len {} is too long for --cost seconds: at most {}",
                                  format_size(options.corpus.packing.tokens),
                                  format_size(DeviceProfile::kMaxSampleTokens)));
  }
  const std::string name = cluster ? cluster->device_profile : "h200";
  const std::string& chosen = options.pool.device_profile;
  return std::make_shared<const DeviceProfile>(
      load_device_profile(chosen.empty() ? name : chosen).for_shape(shape));
}

// A profile that is given is of the cluster's own devices.
std::optional<Cluster> cluster_of(const PoolOptions& options) {
  if (options.cluster.empty()) return std::nullopt;
  Cluster cluster = load_cluster(options.cluster);
  if (!options.device_profile.empty()) cluster.device_speed = 1;
  return cluster;
}

// Additions are asked for in plans for a cluster, which need seconds.
ComputeCost cost_of(const std::shared_ptr<const DeviceProfile>& device) {
  if (!device) return {flops_cost, nullptr};
  return compute_cost(device);
}

}  // namespace

void add_job_options(CLI::App& app, JobOptions& options) {
  add_window_corpus_options(app, options.corpus);
  add_model_options(app, options.model);
  add_pool_options(app, options.pool);
  add_json_option(app, options.json);
}

Job::Job(const JobOptions& options, const std::vector<PlacerKind>& default_placers)
    : options_(options),
      model_(resolve(options.model)),
      placers_(placer_plans(options.pool, model_.attention, default_placers)),
      cluster_(cluster_of(options.pool)),
      device_(load_device(options, cluster_, model_.attention)),
      cost_(cost_of(device_)) {
  check_packing_options(options.corpus.packing);
  corpus_ = std::make_unique<const Corpus>(read(options.corpus));
  windows_ = std::make_unique<WindowStream>(*corpus_, window_options(options));
}

JobWindow Job::next() {
  Window window = windows_->next();
  JobWindow plain{{}, window.epoch};
  for (Packed& packed : window.sequences) plain.sequences.push_back(std::move(packed.sequence));
  return plain;
}

std::vector<std::int64_t> Job::costs(const JobWindow& window) const {
  std::vector<std::int64_t> costs;
  costs.reserve(window.sequences.size());
  for (const PackedSequence& sequence : window.sequences) {
    std::int64_t cost = 0;
    for (const std::int64_t tokens : sequence.sample_tokens) {
      cost += cost_.piece({0, tokens}, device_ ? model_.attention.q_heads : 1);
    }
    costs.push_back(cost);
  }
  return costs;
}

Grouping Job::grouping() const {
  const PoolOptions& pool = options_.pool;
  return pool.grouping.value_or(pool.faithful ? Grouping::kVrsp : Grouping::kVrspRefined);
}

PoolAssignment Job::group(std::span<const std::int64_t> costs) const {
  PoolAssignment pools = assign_pools(costs, options_.pool.pool, grouping());
  return options_.pool.by_load ? by_load(costs, pools) : pools;
}

PoolPlan Job::plan(const PlanOptions& options, std::vector<PackedSequence> sequences) const {
  const std::optional<std::int64_t>& cap = options_.pool.memory_cap;
  if (cap) return make_plan_within(options, sequences, *cap, cost_.piece);
  if (cluster_) return make_plan_for(*cluster_, options, sequences, cost_);
  return make_plan(options, std::move(sequences), cost_.piece);
}

std::vector<PackedSequence> sequences_of(const JobWindow& window,
                                         std::span<const std::int32_t> pool) {
  std::vector<PackedSequence> sequences;
  for (const std::int32_t index : pool) sequences.push_back(window.sequences[at(index)]);
  return sequences;
}

Json job_json(const Job& job) {
  const JobOptions& options = job.options();
  const PoolOptions& pool = options.pool;
  Json json;
  json["version"] = kVersion;
  json["corpus"] = {{"name", job.corpus().name}, {"documents", job.corpus().lengths.size()}};
  json["seed"] = options.corpus.seed;
  json["seq_len"] = options.corpus.packing.tokens;
  json["packing"] = packing_name(options.corpus.packing.packing);
  json["oversize"] = oversize_name(options.corpus.packing.oversize);
  json["order"] = order_name(options.corpus.order);
  json["packing_report"] = to_json(job.packing());
  json["model"] = to_json(job.model());
  json["gbs"] = pool.gbs;
  json["dp"] = pool.dp;
  json["cp"] = pool.cp;
  json["tp"] = pool.tp;
  json["pool"] = pool.pool;
  json["workers"] = job.workers();
  json["gpus_per_node"] = pool.gpus_per_node;
  json["node_fetch"] = pool.node_fetch;
  json["grouping"] = grouping_name(job.grouping());
  json["by_load"] = pool.by_load;
  json["search_us"] = pool.search_us;
  json["inter_node_weight"] = pool.inter_node_weight;
  json["cluster"] = pool.cluster;
  json["ga_indices"] = pool.gbs / pool.dp;
  json["pools"] = job.pools();
  json["at_once"] = job.pools_at_once();
  json["home"] = home_name(pool.home);
  json["cost"] = pool.seconds ? "seconds" : "flops";
  json["faithful"] = pool.faithful;
  return json;
}

std::string describe(const Job& job) {
  const PoolOptions& pool = job.options().pool;
  const auto documents = static_cast<long long>(job.corpus().lengths.size());
  return fmt::format(
      "corpus   {}, {} documents\n"
      "packing  {}\n"
      "window   {} sequences on DP {} = {} pools of P {}, {} at once\n"
      "pool     {} workers (P {} x CP {}{}), {} home layout\n"
      "model    {}\n",
      job.corpus().name, with_commas(documents),
      describe(job.packing(), job.options().corpus.packing), pool.gbs, pool.dp, job.pools(),
      pool.pool, job.pools_at_once(), job.workers(), pool.pool, pool.cp,
      pool.tp > 1 ? fmt::format(", TP {} in it", pool.tp) : "", home_name(pool.home),
      describe(job.model()));
}

}  // namespace libra::cli
