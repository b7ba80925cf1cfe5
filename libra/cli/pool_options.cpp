#include "libra/cli/pool_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libra/base/error.h"
#include "libra/base/names.h"
#include "libra/base/units.h"
#include "libra/cli/option_parsing.h"
#include "libra/plan/used_options.h"

namespace libra::cli {
namespace {

std::vector<PlacerKind> parse_placers(const std::string& text) {
  std::vector<PlacerKind> placers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const PlacerKind placer = parse_placer(text.substr(begin, end - begin));
    if (std::find(placers.begin(), placers.end(), placer) != placers.end()) {
      throw ConfigError(fmt::format("'{}' is there twice: name each once", placer_name(placer)));
    }
    placers.push_back(placer);
    begin = end + 1;
  }
  return placers;
}

HomeKind parse_named_home(const std::string& text) {
  const HomeKind home = parse_home(text);
  if (home == HomeKind::kExplicit) {
    throw ConfigError(
        "explicit runs cannot be given here: use contiguous, zigzag-row or "
        "zigzag-document");
  }
  return home;
}

constexpr Names<bool, 2> kCosts = {{{false, "flops"}, {true, "seconds"}}};

void add_window_options(CLI::App& app, PoolOptions& options) {
  const char* const group = "Window and workers";
  add_count(app, "--gbs", options.gbs, "Packed sequences of an optimizer step (a window)")
      ->group(group)
      ->required();
  add_count(app, "--dp", options.dp, "Data-parallel replicas")->group(group)->required();
  add_count(app, "--cp", options.cp, "Workers that share a sequence, TP ranks among them")
      ->group(group)
      ->required();
  add_count(app, "--tp", options.tp, "Of these, workers that share a token run")->group(group);
  add_count(app, "--pool", options.pool, "P, replicas of a pool")->group(group)->required();
  add_parsed(
      app, "--grouping", [&](const std::string& text) { options.grouping = parse_grouping(text); },
      "production | zigzag | zigzag_swap | vrsp | vrsp_refined (default: vrsp_refined; vrsp with "
      "--faithful)")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--by-load", options.by_load, "Pools of like load share a GA index")->group(group);
  add_count(app, "--gpus-per-node", options.gpus_per_node,
            "GPUs of a node; pools lie on consecutive GPUs, CP innermost")
      ->group(group);
}

void add_placement_options(CLI::App& app, PoolOptions& options) {
  const char* const group = "Placement";
  add_parsed(
      app, "--placer", [&](const std::string& text) { options.placers = parse_placers(text); },
      "Comma-separated: none | ulysses | paper | reserve | balanced (--faithful: paper for the "
      "last two)")
      ->type_name("NAMES")
      ->group(group);
  add_parsed(
      app, "--fetch", [&](const std::string& text) { options.fetch = parse_fetch(text); },
      "whole | prefix (default: whole for paper, prefix for the others)")
      ->type_name("NAME")
      ->group(group);
  add_parsed(
      app, "--home", [&](const std::string& text) { options.home = parse_named_home(text); },
      "Home layout: contiguous | zigzag-row | zigzag-document")
      ->type_name("NAME")
      ->default_str("contiguous")
      ->group(group);
  add_tau_option(app, [&](std::int32_t ppm) { options.tau_ppm = ppm; })->group(group);
  add_count(app, "--search-us", options.search_us,
            "Time for placer balanced to search for fewer bytes, in microseconds of a usual core")
      ->group(group);
  add_count(app, "--inter-node-weight", options.inter_node_weight,
            "What placer balanced counts a byte between nodes for, beyond one inside a node")
      ->group(group);
  app.add_flag(
         "--node-fetch", options.node_fetch,
         "With placers reserve and balanced, what several workers of a node need of a KV group "
         "crosses to it once, to one that passes it on")
      ->group(group);
  app.add_flag("--faithful", options.faithful,
               "The paper's system as it stands: placer paper, whole groups, tau 0.03, every tile "
               "in every chunk")
      ->group(group);
}

void add_cost_options(CLI::App& app, PoolOptions& options) {
  const char* const group = "Placement";
  add_parsed(
      app, "--cost",
      [&](const std::string& text) { options.seconds = parse_name(kCosts, "cost", text); },
      "What is balanced: flops | seconds (of --device-profile)")
      ->type_name("NAME")
      ->default_str("flops")
      ->group(group);
  app.add_option("--device-profile", options.device_profile,
                 "A built-in profile's name or a JSON file; for --cost seconds (default: h200)")
      ->type_name("NAME|FILE")
      ->group(group);
}

void add_tiling_options(CLI::App& app, PoolOptions& options) {
  const char* const group = "Tiles and chunks";
  add_size(app, "--block", options.block, "B, most tokens of a tile")->group(group);
  add_count(app, "--head-shards", options.head_shards, "H, head shards of a sequence")
      ->group(group);
  add_parsed(
      app, "--chunks", [&](const std::string& text) { options.chunks = parse_count(text); },
      "M, head chunks of the pipeline (--faithful: 4)")
      ->type_name("N")
      ->default_str(fmt::format("{}", PlanOptions{}.chunks))
      ->group(group);
  add_parsed(
      app, "--backward", [&](const std::string& text) { options.backward = parse_backward(text); },
      "keep what the forward pass fetched | refetch it")
      ->type_name("MODE")
      ->default_str("keep")
      ->group(group);
  add_parsed(
      app, "--memory-cap", [&](const std::string& text) { options.memory_cap = parse_size(text); },
      "Most extra bytes of a worker; more chunks and refetch are tried before it is an error "
      "(default: no cap)")
      ->type_name("BYTES")
      ->group(group);
}

void check_faithful(const PoolOptions& options) {
  if (!options.faithful) return;
  const auto contradicts = [](const std::string& what) {
    throw ConfigError(
        fmt::format("--faithful is the paper's system, {}: leave one of them out", what));
  };
  for (const PlacerKind own : {PlacerKind::kReserve, PlacerKind::kBalanced}) {
    if (std::count(options.placers.begin(), options.placers.end(), own) > 0) {
      contradicts(fmt::format("which has no placer {}", placer_name(own)));
    }
  }
  if (options.fetch == Fetch::kPrefix)
    contradicts("which fetches whole groups, not --fetch prefix");
  if (options.node_fetch) contradicts("which has no --node-fetch");
  if (options.tau_ppm && *options.tau_ppm != 30'000) contradicts("whose --tau is 0.03");
  if (options.seconds) contradicts("which balances FLOPs, not --cost seconds");
}

std::vector<PlacerKind> chosen_placers(const PoolOptions& options,
                                       std::vector<PlacerKind> defaults) {
  if (!options.placers.empty()) return options.placers;
  if (!options.faithful) return defaults;
  std::replace(defaults.begin(), defaults.end(), PlacerKind::kBalanced, PlacerKind::kPaper);
  defaults.erase(std::unique(defaults.begin(), defaults.end()), defaults.end());
  return defaults;
}

// Of PlanOptions::search_us, --search-us.
std::string as_flag(std::string_view name) {
  std::string flag = fmt::format("--{}", name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

PlanOptions plan_options(const PoolOptions& options, const AttentionShape& shape,
                         PlacerKind placer) {
  PlanOptions plan;
  plan.shape = shape;
  plan.cp = options.cp;
  plan.tp = options.tp;
  plan.home = options.home;
  plan.block_tokens = options.block;
  plan.head_shards = options.head_shards;
  plan.placer = placer;
  plan.fetch = options.fetch.value_or(default_fetch(placer));
  plan.tau_ppm = options.tau_ppm.value_or(plan.tau_ppm);
  plan.backward = options.backward;
  plan.gpus_per_node = options.gpus_per_node;
  plan.inter_node_weight = options.inter_node_weight;
  plan.node_fetch = options.node_fetch && looks_at_links(placer);
  plan.search_us = options.search_us;
  if (options.faithful && placer == PlacerKind::kPaper) plan = faithful(plan);
  plan.chunks = options.chunks.value_or(plan.chunks);
  return plan;
}

// The head shards are ours to choose here, so that heads which do not allow it are no error.
PlacerPlan ulysses_plan(const PoolOptions& options, const AttentionShape& shape, bool alone) {
  PlacerPlan plan{PlacerKind::kUlysses, plan_options(options, shape, PlacerKind::kUlysses), {}};
  plan.options.head_shards = options.cp;
  try {
    if (shape.q_heads % options.cp == 0) {
      plan.options.chunks = largest_legal_chunks(shape, options.cp, plan.options.chunks);
    }
    check_options(plan.options, options.pool);
  } catch (const ConfigError& error) {
    plan.skipped = fmt::format("placer ulysses needs H = CP: {}", error.what());
    if (alone) throw ConfigError(plan.skipped);
  }
  return plan;
}

}  // namespace

CLI::Option* add_tau_option(CLI::App& app, const std::function<void(std::int32_t)>& set) {
  const auto parse = [set](const std::string& text) {
    set(static_cast<std::int32_t>(std::lround(parse_decimal(text, 100) * 1e6)));
  };
  return add_parsed(app, "--tau", parse, "Wanted excess of a worker's load over the mean")
      ->type_name("X")
      ->default_str("0.03");
}

void add_pool_options(CLI::App& app, PoolOptions& options) {
  add_window_options(app, options);
  add_tiling_options(app, options);
  add_placement_options(app, options);
  add_cost_options(app, options);
}

std::vector<PlacerPlan> placer_plans(const PoolOptions& options, const AttentionShape& shape,
                                     const std::vector<PlacerKind>& defaults) {
  check_faithful(options);
  check_window(options.gbs, options.dp, options.pool);
  if (options.gpus_per_node < 1) throw ConfigError("--gpus-per-node is 0: it must be at least 1");
  check_options(plan_options(options, shape, PlacerKind::kNone), options.pool);
  if (!options.device_profile.empty() && !options.seconds) {
    throw ConfigError("--device-profile is for --cost seconds: add it, or leave the profile out");
  }
  if (!options.cluster.empty() && (!options.seconds || options.memory_cap)) {
    throw ConfigError("--cluster needs --cost seconds and goes without --memory-cap");
  }
  const std::vector<PlacerKind> placers = chosen_placers(options, defaults);
  check_used(plan_options(options, shape, PlacerKind::kBalanced), !options.cluster.empty(), placers,
             as_flag);
  std::vector<PlacerPlan> plans;
  for (const PlacerKind placer : placers) {
    if (placer == PlacerKind::kUlysses) {
      plans.push_back(ulysses_plan(options, shape, placers.size() == 1));
    } else {
      plans.push_back({placer, plan_options(options, shape, placer), {}});
    }
  }
  return plans;
}

}  // namespace libra::cli
