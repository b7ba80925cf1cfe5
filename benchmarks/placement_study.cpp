// What the placers move and how well they balance: pools of windows of 128, max/mean, GB per layer
// forward in total and between 8-GPU nodes, as ratios to placer `paper` with whole groups too, and
// planning time. docs/results.md holds the tables.
//
//   placement_study                      # the synthetic settings, a table each
//   placement_study --corpus data/mix.npy --seq-len 256K --cp 8 --block 4096 --kv-heads 8 --json

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "benchmarks/study_windows.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/traffic.h"
#include "libra/plan/traffic_bound.h"

namespace libra {
namespace {

constexpr std::int32_t kPoolSize = 8;
constexpr std::int32_t kGpusPerNode = 8;

struct Setting {
  std::string corpus;
  std::string tokens = "256K";
  std::int32_t cp = 8;
  std::string block = "4096";
  std::int32_t kv_heads = 8;
};

const std::vector<Setting> kSyntheticSettings = {{"synthetic:paper-256k", "256K", 8, "4096", 8},
                                                 {"synthetic:paper-256k", "256K", 8, "4096", 16},
                                                 {"synthetic:paper-1m", "1M", 16, "8192", 4}};

struct StudyOptions {
  Setting setting;
  std::string home = "contiguous";
  bool production = false;  ///< pools of sequences as they come, else VRSP
  std::int32_t head_shards = 2;
  std::vector<std::int32_t> search_us = {0, 10'000};
  std::int32_t inter_node_weight = 1;
  int windows = 3;
  std::uint64_t seed = 1;
  bool json = false;
};

struct Variant {
  PlacerKind placer = PlacerKind::kNone;
  Fetch fetch = Fetch::kPrefix;
  std::int32_t search_us = 0;
  bool node_fetch = false;
};

/// Means over the pools, but for `worst`, the median and the 90th percentile.
struct Row {
  Variant variant;
  std::int32_t head_shards = 0;
  double max_over_mean = 0;
  double worst = 0;
  double gb_total = 0;
  double gb_inter_node = 0;
  double gb_bound = 0;
  double tiles_moved = 0;
  double plan_us_median = 0;
  double plan_us_p90 = 0;
};

Grouping grouping(const StudyOptions& study) {
  return study.production ? Grouping::kProduction : Grouping::kVrsp;
}

using Pools = std::vector<std::vector<PackedSequence>>;

Pools make_pools(const Setting& setting, const StudyOptions& study) {
  Pools pools;
  for (const auto& window :
       study_windows(setting.corpus, parse_size(setting.tokens), 128, study.windows, study.seed)) {
    std::vector<std::int64_t> costs;
    for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
    const PoolAssignment assignment = assign_pools(costs, kPoolSize, grouping(study));
    for (std::int32_t k = 0; k < assignment.pools(); ++k) {
      std::vector<PackedSequence>& pool = pools.emplace_back();
      for (const std::int32_t sequence : assignment.pool(k)) pool.push_back(window[at(sequence)]);
    }
  }
  return pools;
}

PlanOptions plan_options(const Setting& setting, const StudyOptions& study,
                         const Variant& variant) {
  PlanOptions options;
  options.shape = {32, setting.kv_heads, 128, 128};
  options.cp = setting.cp;
  options.block_tokens = parse_size(setting.block);
  options.home = parse_home(study.home);
  options.placer = variant.placer;
  options.fetch = variant.fetch;
  options.search_us = variant.search_us;
  options.gpus_per_node = kGpusPerNode;
  options.node_fetch = variant.node_fetch;
  options.inter_node_weight = variant.node_fetch ? study.inter_node_weight : 0;
  options.head_shards = variant.placer == PlacerKind::kUlysses ? setting.cp : study.head_shards;
  options.chunks = largest_legal_chunks(options.shape, options.head_shards, 4);
  return options;
}

Row study_placer(const PlanOptions& options, const Variant& variant, const Pools& pools) {
  Row row{variant, options.head_shards};
  const auto n = static_cast<double>(pools.size());
  std::vector<double> plan_us;
  for (const std::vector<PackedSequence>& pool : pools) {
    std::vector<PackedSequence> sequences = pool;
    const auto begin = std::chrono::steady_clock::now();
    const PoolPlan plan = make_plan(options, std::move(sequences));
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin;
    plan_us.push_back(spent.count());
    const TrafficReport traffic = forward_traffic(plan);
    row.gb_total += static_cast<double>(traffic.total()) / 1e9 / n;
    row.gb_inter_node += static_cast<double>(traffic.inter_node(kGpusPerNode)) / 1e9 / n;
    row.gb_bound += static_cast<double>(forward_bytes_bound(plan)) / 1e9 / n;
    row.tiles_moved += plan.tiles_moved() / n;
    row.max_over_mean += plan.placement.max_over_mean() / n;
    row.worst = std::max(row.worst, plan.placement.max_over_mean());
  }
  std::sort(plan_us.begin(), plan_us.end());
  row.plan_us_median = plan_us[plan_us.size() / 2];
  row.plan_us_p90 = plan_us[plan_us.size() * 9 / 10];
  return row;
}

std::vector<Variant> variants(const StudyOptions& study) {
  std::vector<Variant> variants = {{PlacerKind::kPaper, Fetch::kWhole},
                                   {PlacerKind::kPaper, Fetch::kPrefix},
                                   {PlacerKind::kNone, Fetch::kPrefix},
                                   {PlacerKind::kUlysses, Fetch::kPrefix},
                                   {PlacerKind::kReserve, Fetch::kPrefix}};
  for (const bool node_fetch : {false, true}) {
    for (const std::int32_t search_us : study.search_us) {
      variants.push_back({PlacerKind::kBalanced, Fetch::kPrefix, search_us, node_fetch});
    }
  }
  return variants;
}

std::string name_of(const Variant& variant) {
  std::string name = fmt::format("{}, {}", placer_name(variant.placer), fetch_name(variant.fetch));
  if (variant.node_fetch) name += ", node fetch";
  if (variant.search_us > 0) name += fmt::format(", {} us", variant.search_us);
  return name;
}

void print_json(const Setting& setting, const StudyOptions& study, std::size_t pools,
                const Row& row) {
  fmt::print(R"({{"table":"placement","corpus":"{}","workers":{},"head_shards":{},"kv_heads":{},)"
             R"("home":"{}","grouping":"{}","placer":"{}","fetch":"{}","search_us":{},)"
             R"("node_fetch":{},"pools":{},)",
             setting.corpus, kPoolSize * setting.cp, row.head_shards, setting.kv_heads, study.home,
             grouping_name(grouping(study)), placer_name(row.variant.placer),
             fetch_name(row.variant.fetch), row.variant.search_us, row.variant.node_fetch, pools);
  fmt::print(
      R"("max_over_mean":{:.4f},"worst":{:.4f},"gb_total":{:.2f},"gb_inter_node":{:.2f},)"
      R"("gb_bound":{:.2f},"tiles_moved":{:.1f},"plan_us_median":{:.1f},"plan_us_p90":{:.1f}}})"
      "\n",
      row.max_over_mean, row.worst, row.gb_total, row.gb_inter_node, row.gb_bound, row.tiles_moved,
      row.plan_us_median, row.plan_us_p90);
}

void print_heading(const Setting& setting, const StudyOptions& study, std::size_t pools) {
  fmt::print("\n{}, {} tokens, W {}, H {}, B {}, h_kv {}, {} homes, {}, {} pools\n\n",
             setting.corpus, setting.tokens, kPoolSize * setting.cp, study.head_shards,
             setting.block, setting.kv_heads, study.home, grouping_name(grouping(study)), pools);
  fmt::print(
      "| placer, fetch, search | max/mean (worst) | GB total / inter-node | ratio | over bound | "
      "moved |"
      " plan us (p90) |\n|---|---|---|---|---|---|---|\n");
}

double over(double value, double base) { return base > 0 ? value / base : 0; }

void print_row(const Row& row, const Row& paper) {
  fmt::print(
      "| {} | {:.3f} ({:.3f}) | {:.1f} / {:.1f} | {:.3f} / {:.3f} | {:.2f} | {:.0f} | "
      "{:.0f} ({:.0f}) |\n",
      name_of(row.variant), row.max_over_mean, row.worst, row.gb_total, row.gb_inter_node,
      over(row.gb_total, paper.gb_total), over(row.gb_inter_node, paper.gb_inter_node),
      over(row.gb_total, row.gb_bound), row.tiles_moved, row.plan_us_median, row.plan_us_p90);
}

void study_setting(const Setting& setting, const StudyOptions& study) {
  const Pools pools = make_pools(setting, study);
  if (!study.json) print_heading(setting, study, pools.size());
  Row paper;
  for (const Variant& variant : variants(study)) {
    const Row row = study_placer(plan_options(setting, study, variant), variant, pools);
    if (paper.gb_total == 0) paper = row;
    if (study.json) {
      print_json(setting, study, pools.size(), row);
    } else {
      print_row(row, paper);
    }
  }
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  CLI::App app("Balance, traffic and planning time of the placers, P = 8");
  libra::StudyOptions study;
  libra::Setting& setting = study.setting;
  app.add_option("--corpus", setting.corpus, "path or synthetic:NAME (default: three settings)");
  app.add_option("--seq-len", setting.tokens, "tokens of a packed sequence")->capture_default_str();
  app.add_option("--block", setting.block, "B")->capture_default_str();
  app.add_option("--cp", setting.cp)->capture_default_str();
  app.add_option("--kv-heads", setting.kv_heads)->capture_default_str();
  app.add_option("--home", study.home)->capture_default_str();
  app.add_flag("--production", study.production, "pools of sequences as they come, not VRSP");
  app.add_option("--head-shards", study.head_shards, "H")->capture_default_str();
  app.add_option("--search-us", study.search_us, "of placer balanced")->capture_default_str();
  app.add_option("--inter-node-weight", study.inter_node_weight,
                 "of placer balanced with node fetch")
      ->capture_default_str();
  app.add_option("--windows", study.windows, "windows of 128 sequences")->capture_default_str();
  app.add_option("--seed", study.seed)->capture_default_str();
  app.add_flag("--json", study.json, "a JSON object a row");
  CLI11_PARSE(app, argc, argv);
  if (!setting.corpus.empty()) {
    libra::study_setting(setting, study);
  } else {
    for (const libra::Setting& each : libra::kSyntheticSettings) libra::study_setting(each, study);
  }
}
