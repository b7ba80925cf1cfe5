#include "libra/cli/sim_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/base/version.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/pool_options.h"
#include "libra/cli/text_table.h"
#include "libra/plan/rules.h"

namespace libra::cli {
namespace {

constexpr std::int32_t kDefaultPool = 8;
constexpr std::int32_t kDefaultEp = 8;

void add_optional_count(CLI::App& app, const std::string& name, std::optional<std::int32_t>& target,
                        const std::string& help, const char* group) {
  add_parsed(
      app, name, [&target](const std::string& text) { target = parse_count(text); }, help)
      ->type_name("N")
      ->group(group);
}

void add_training_options(CLI::App& app, SimOptions& options) {
  const char* const group = "Training";
  app.add_option("--cluster", options.cluster,
                 "A preset or a JSON file (docs/cluster_format.md): hgx-h200 | hgx-h100 | "
                 "nvl72-gb200 | supernode-64")
      ->type_name("NAME|FILE")
      ->capture_default_str()
      ->group(group);
  add_count(app, "--gpus", options.gpus, "GPUs of the job: DP x PP x CP")->required()->group(group);
  add_count(app, "--cp", options.cp, "Workers that share a sequence, TP ranks among them")
      ->required()
      ->group(group);
  add_count(app, "--tp", options.tp, "Of these, workers that share a token run")->group(group);
  add_count(app, "--pp", options.pp, "Pipeline stages")->group(group);
  add_optional_count(app, "--ep", options.ep,
                     "Workers that share the experts (default: up to 8 if the model has experts)",
                     group);
  add_count(app, "--gbs", options.gbs, "Packed sequences of an optimizer step (a window)")
      ->required()
      ->group(group);
  add_optional_count(app, "--layers", options.layers, "Layers, in place of the model's", group);
  app.add_flag("!--no-recompute", options.recompute,
               "Keep activations instead of running each layer's forward pass again")
      ->group(group);
}

}  // namespace

void add_sim_options(CLI::App& app, SimOptions& options) {
  add_window_corpus_options(app, options.corpus);
  add_model_options(app, options.model);
  add_training_options(app, options);
  add_count(app, "--steps", options.steps, "Windows to simulate");
  add_count(app, "--threads", options.threads, "Threads (default: one per core)");
  add_json_option(app, options.json);
}

void add_sim_pool_options(CLI::App& app, SimOptions& options) {
  const char* const group = "Pools";
  add_optional_count(app, "--pool", options.pool,
                     "P, replicas of a pool (default: 8, or the largest divisor of DP below)",
                     group);
  add_count(app, "--search-us", options.search_us,
            "Time for placer balanced to search for fewer bytes, in microseconds of a usual core")
      ->group(group);
  app.add_flag("--by-load", options.by_load,
               "Pools of like load share a GA index (methods libra-tap-vrsp and libra)")
      ->group(group);
  add_size(app, "--block", options.block, "B, most tokens of a tile")->group(group);
  add_count(app, "--head-shards", options.head_shards, "H, head shards of a sequence")
      ->group(group);
  add_count(app, "--chunks", options.chunks,
            "M, head chunks of the pipeline (libra-paper, distca-emulated: 4)")
      ->group(group);
  add_tau_option(app, [&](std::int32_t ppm) { options.tau_ppm = ppm; })->group(group);
  add_parsed(
      app, "--placer", [&](const std::string& text) { options.placer = parse_placer(text); },
      "Of method libra: balanced | reserve | paper")
      ->type_name("NAME")
      ->default_str("balanced")
      ->group(group);
  add_parsed(
      app, "--home", [&](const std::string& text) { options.home = parse_home(text); },
      "Home layout: contiguous | zigzag-row | zigzag-document")
      ->type_name("NAME")
      ->default_str("contiguous")
      ->group(group);
}

namespace {

std::int32_t default_ep(const Scenario& scenario) {
  if (!scenario.linear.moe()) return 1;
  std::int32_t ep = std::min(kDefaultEp, scenario.stage_gpus());
  while (scenario.stage_gpus() % ep != 0 || scenario.linear.experts % ep != 0) --ep;
  return ep;
}

PlanOptions pool_plan_options(const SimOptions& options, const ModelShape& model) {
  PlanOptions plan;
  plan.shape = model.attention;
  plan.cp = options.cp;
  plan.tp = options.tp;
  plan.home = options.home;
  plan.block_tokens = options.block;
  plan.head_shards = options.head_shards;
  plan.chunks = options.chunks;
  plan.tau_ppm = options.tau_ppm;
  plan.placer = options.placer;
  plan.search_us = options.search_us;
  plan.fetch = default_fetch(options.placer);
  return plan;
}

void check_counts(const SimOptions& options) {
  require_positive("--gpus", options.gpus);
  require_positive("--cp", options.cp);
  require_positive("--pp", options.pp);
  require_positive("--gbs", options.gbs);
  require_positive("--steps", options.steps);
  const std::int64_t replica = std::int64_t{options.cp} * options.pp;
  require_divides("CP x PP", replica, "the number of GPUs", options.gpus);
  if (options.layers) require_positive("--layers", *options.layers);
  if (options.placer == PlacerKind::kNone || options.placer == PlacerKind::kUlysses) {
    throw ConfigError("--placer: method libra places with balanced, reserve or paper");
  }
  if (options.home == HomeKind::kExplicit) {
    throw ConfigError(
        "--home: explicit runs cannot be given here: use contiguous, zigzag-row or "
        "zigzag-document");
  }
}

}  // namespace

Scenario make_scenario(const SimOptions& options) {
  check_counts(options);
  Scenario scenario;
  scenario.model = resolve(options.model);
  scenario.model.layers = options.layers.value_or(scenario.model.layers);
  scenario.linear = find_linear_shape(options.model.model);
  scenario.cluster = load_cluster(options.cluster);
  scenario.seq_tokens = options.corpus.packing.tokens;
  scenario.gbs = options.gbs;
  scenario.pp = options.pp;
  scenario.dp = options.gpus / options.pp / options.cp;
  scenario.pools_by_load = options.by_load;
  scenario.recompute = options.recompute;
  scenario.plan = pool_plan_options(options, scenario.model);
  scenario.pool = options.pool.value_or(largest_pool(scenario.dp, kDefaultPool));
  scenario.ep = options.ep.value_or(default_ep(scenario));
  scenario.seed = options.corpus.seed;
  check_scenario(scenario);
  return scenario;
}

SimWindows make_windows(const Corpus& corpus, const SimOptions& options, std::size_t most_samples) {
  WindowOptions window_options;
  window_options.sequences = options.gbs;
  window_options.packing = options.corpus.packing;
  window_options.order = options.corpus.order;
  window_options.seed = options.corpus.seed;
  WindowStream stream(corpus, window_options);
  SimWindows windows;
  std::size_t samples = 0;
  for (std::int32_t step = 0; step < options.steps; ++step) {
    Window window = stream.next();
    for (const Packed& packed : window.sequences) samples += packed.sequence.sample_tokens.size();
    if (samples > most_samples) {
      throw ConfigError(fmt::format(
          "--steps {}: all windows are kept in memory, and {} of these have more than {} samples, "
          "the most there may be: use at most {} steps{}",
          options.steps, step + 1, format_size(static_cast<std::int64_t>(most_samples)),
          std::max(step, 1), step > 0 ? "" : " of fewer sequences"));
    }
    windows.epochs = std::max(windows.epochs, window.epoch + 1);
    auto& sequences = windows.windows.emplace_back();
    sequences.reserve(window.sequences.size());
    for (Packed& packed : window.sequences) sequences.push_back(std::move(packed.sequence));
  }
  windows.packing = stream.report();
  return windows;
}

Json scenario_json(const Scenario& scenario, const SimOptions& options, const Corpus& corpus,
                   const SimWindows& windows) {
  Json json;
  json["version"] = kVersion;
  json["corpus"] = {{"name", corpus.name}, {"documents", corpus.lengths.size()}};
  json["seed"] = options.corpus.seed;
  json["seq_len"] = scenario.seq_tokens;
  json["packing"] = packing_name(options.corpus.packing.packing);
  json["oversize"] = oversize_name(options.corpus.packing.oversize);
  json["order"] = order_name(options.corpus.order);
  json["packing_report"] = to_json(windows.packing);
  json["model"] = to_json(scenario.model);
  json["cluster"] = scenario.cluster.name;
  json["gpus"] = scenario.gpus();
  json["dp"] = scenario.dp;
  json["pp"] = scenario.pp;
  json["cp"] = scenario.plan.cp;
  json["tp"] = scenario.plan.tp;
  json["ep"] = scenario.ep;
  json["gbs"] = scenario.gbs;
  json["ga_indices"] = scenario.ga();
  json["recompute"] = scenario.recompute;
  json["steps"] = windows.windows.size();
  json["epochs"] = windows.epochs;
  return json;
}

std::string describe(const Scenario& scenario, const SimOptions& options, const Corpus& corpus,
                     const SimWindows& windows) {
  return fmt::format(
      "corpus   {}, {} documents; {}\n"
      "model    {}, {} layers{}\n"
      "cluster  {}: {} GPUs = DP {} x PP {} x CP {}{}\n"
      "step     {} sequences, {} GA indices; {} steps\n",
      corpus.name, with_commas(static_cast<long long>(corpus.lengths.size())),
      describe(windows.packing, options.corpus.packing), describe(scenario.model),
      scenario.model.layers, scenario.recompute ? ", recompute" : "", scenario.cluster.name,
      scenario.gpus(), scenario.dp, scenario.pp, scenario.plan.cp,
      scenario.ep > 1 ? fmt::format(", EP {}", scenario.ep) : "", scenario.gbs, scenario.ga(),
      windows.windows.size());
}

}  // namespace libra::cli
