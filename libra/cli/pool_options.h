// The options that say how pools are formed and planned, and the plan options that follow for each
// placer asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libra/plan/plan_options.h"
#include "libra/plan/pool_assignment.h"

namespace libra::cli {

struct PoolOptions {
  std::int32_t gbs = 0;
  std::int32_t dp = 0;
  std::int32_t cp = 0;
  std::int32_t tp = 1;
  std::int32_t pool = 0;
  std::int64_t block = 4096;
  std::int32_t head_shards = 2;
  std::optional<std::int32_t> chunks;  ///< none: PlanOptions', or faithful()'s
  std::optional<Grouping> grouping;    ///< none: as Job::grouping
  bool by_load = false;                ///< pools in the order of their load
  std::vector<PlacerKind> placers;     ///< empty: the command's default
  std::optional<Fetch> fetch;          ///< none: default_fetch of the placer
  HomeKind home = HomeKind::kContiguous;
  std::int32_t gpus_per_node = 8;
  std::optional<std::int32_t> tau_ppm;
  BackwardMode backward = BackwardMode::kKeep;
  std::optional<std::int64_t> memory_cap;
  std::string cluster;  ///< of make_plan_for; empty: plans do not look at links
  std::int32_t search_us = 0;
  std::int32_t inter_node_weight = 0;
  bool node_fetch = false;
  bool seconds = false;  ///< costs are times of `device_profile`, else FLOPs
  std::string device_profile;
  bool faithful = false;
};

void add_pool_options(CLI::App& app, PoolOptions& options);

/// --tau; `set` is given millionths.
CLI::Option* add_tau_option(CLI::App& app, const std::function<void(std::int32_t)>& set);

/// One placer's plan options, or why it cannot be used.
struct PlacerPlan {
  PlacerKind placer = PlacerKind::kNone;
  PlanOptions options;
  std::string skipped;  ///< empty if it can
};

/// For each placer asked for, else for each of `defaults` (with --faithful: `paper` for our own).
/// `ulysses` gets H = CP and the largest legal M; if these heads do not allow it, it is skipped
/// unless it was asked for alone. Throws ConfigError for options that break a rule or contradict
/// each other.
std::vector<PlacerPlan> placer_plans(const PoolOptions& options, const AttentionShape& shape,
                                     const std::vector<PlacerKind>& defaults);

}  // namespace libra::cli
