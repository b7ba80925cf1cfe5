// The options that say what is simulated, shared by `simulate` and `tune`: a corpus, a model, a
// cluster and how training is spread over it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libra/cli/corpus_options.h"
#include "libra/cli/model_options.h"
#include "libra/cli/report.h"
#include "libra/sim/scenario.h"

namespace libra::cli {

struct SimOptions {
  CorpusOptions corpus;
  ModelOptions model;
  std::string cluster = "hgx-h200";
  std::int32_t gpus = 0;
  std::int32_t cp = 0;
  std::int32_t tp = 1;
  std::int32_t pp = 1;
  std::optional<std::int32_t> ep;  ///< none: up to 8 where the model has experts
  std::int32_t gbs = 0;
  std::optional<std::int32_t> layers;  ///< in place of the model's
  std::optional<std::int32_t> pool;    ///< none: min(8, DP)
  std::int64_t block = 4096;
  std::int32_t head_shards = 2;
  std::int32_t chunks = 2;
  std::int32_t tau_ppm = 30'000;
  HomeKind home = HomeKind::kContiguous;
  PlacerKind placer = PlacerKind::kBalanced;
  std::int32_t search_us = 0;
  bool by_load = false;
  bool recompute = true;
  std::int32_t steps = 10;
  std::int32_t threads = 0;
  std::string json;
};

/// All but the pool's own (--pool, --block, ...), which `tune` searches.
void add_sim_options(CLI::App& app, SimOptions& options);
/// --pool, --block, --head-shards, --chunks, --tau, --placer, --home.
void add_sim_pool_options(CLI::App& app, SimOptions& options);

/// Throws ConfigError for options that contradict each other, InputError for the cluster's file.
Scenario make_scenario(const SimOptions& options);

/// The windows of a run, in production order, and what is said of them.
struct SimWindows {
  std::vector<std::vector<PackedSequence>> windows;
  std::int64_t epochs = 0;
  PackingReport packing;
};

/// Of all windows of a run together: half a GB of lengths.
inline constexpr std::size_t kMostSamples = std::size_t{64} << 20;

/// Throws ConfigError that says how many steps can be if these have more samples.
SimWindows make_windows(const Corpus& corpus, const SimOptions& options,
                        std::size_t most_samples = kMostSamples);

/// What was asked for: corpus, model, cluster, layout.
Json scenario_json(const Scenario& scenario, const SimOptions& options, const Corpus& corpus,
                   const SimWindows& windows);
std::string describe(const Scenario& scenario, const SimOptions& options, const Corpus& corpus,
                     const SimWindows& windows);

}  // namespace libra::cli
