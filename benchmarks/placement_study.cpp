// What the placers move and how well they balance: VRSP pools of windows of 128, max/mean, GB per
// layer forward in total and between 8-GPU nodes, planning time. One JSON object a line;
// docs/results.md holds the table.
//
//   placement_study --corpus synthetic:paper-256k --seq-len 256K --cp 8 --block 4096 --kv-heads 8
//   --windows 3

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

namespace libra {
namespace {

constexpr std::int32_t kPoolSize = 8;
constexpr std::int32_t kGpusPerNode = 8;

struct StudyOptions {
  std::string corpus = "synthetic:paper-256k";
  std::string tokens = "256K";
  std::string block = "4096";
  std::string home = "contiguous";
  std::int32_t cp = 8;
  std::int32_t head_shards = 2;
  std::int32_t kv_heads = 8;
  int windows = 3;
  std::uint64_t seed = 1;
};

std::vector<std::vector<PackedSequence>> vrsp_pools(const StudyOptions& study) {
  std::vector<std::vector<PackedSequence>> pools;
  for (const auto& window :
       study_windows(study.corpus, parse_size(study.tokens), 128, study.windows, study.seed)) {
    std::vector<std::int64_t> costs;
    for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
    const PoolAssignment assignment = assign_pools(costs, kPoolSize, Grouping::kVrsp);
    for (std::int32_t k = 0; k < assignment.pools(); ++k) {
      std::vector<PackedSequence>& pool = pools.emplace_back();
      for (const std::int32_t sequence : assignment.pool(k)) pool.push_back(window[at(sequence)]);
    }
  }
  return pools;
}

PlanOptions plan_options(const StudyOptions& study, PlacerKind placer, Fetch fetch) {
  PlanOptions options;
  options.shape = {32, study.kv_heads, 128, 128};
  options.cp = study.cp;
  options.block_tokens = parse_size(study.block);
  options.home = parse_home(study.home);
  options.placer = placer;
  options.fetch = fetch;
  options.head_shards = placer == PlacerKind::kUlysses ? study.cp : study.head_shards;
  options.chunks = largest_legal_chunks(options.shape, options.head_shards, 4);
  return options;
}

void study_placer(const StudyOptions& study, const std::vector<std::vector<PackedSequence>>& pools,
                  PlacerKind placer, Fetch fetch) {
  const PlanOptions options = plan_options(study, placer, fetch);
  double max_over_mean = 0;
  double worst = 0;
  double bytes = 0;
  double inter_node = 0;
  double moved = 0;
  std::vector<double> plan_us;
  for (const std::vector<PackedSequence>& pool : pools) {
    std::vector<PackedSequence> sequences = pool;
    const auto begin = std::chrono::steady_clock::now();
    const PoolPlan plan = make_plan(options, std::move(sequences));
    plan_us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
    const TrafficReport traffic = forward_traffic(plan);
    bytes += static_cast<double>(traffic.total());
    inter_node += static_cast<double>(traffic.inter_node(kGpusPerNode));
    moved += plan.tiles_moved();
    max_over_mean += plan.placement.max_over_mean();
    worst = std::max(worst, plan.placement.max_over_mean());
  }
  std::sort(plan_us.begin(), plan_us.end());
  const auto n = static_cast<double>(pools.size());
  fmt::print(R"({{"table":"placement","corpus":"{}","workers":{},"head_shards":{},"kv_heads":{},)"
             R"("home":"{}","placer":"{}",)"
             R"("fetch":"{}","pools":{},"max_over_mean":{:.4f},"worst":{:.4f},)"
             R"("gb_total":{:.2f},"gb_inter_node":{:.2f},)"
             R"("tiles_moved":{:.1f},"plan_us_median":{:.1f},"plan_us_p90":{:.1f}}})"
             "\n",
             study.corpus, kPoolSize * study.cp, options.head_shards, study.kv_heads, study.home,
             placer_name(placer), fetch_name(fetch), pools.size(), max_over_mean / n, worst,
             bytes / n / 1e9, inter_node / n / 1e9, moved / n, plan_us[plan_us.size() / 2],
             plan_us[plan_us.size() * 9 / 10]);
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  CLI::App app("Balance, traffic and planning time of the placers, P = 8");
  libra::StudyOptions study;
  app.add_option("--corpus", study.corpus, "path or synthetic:NAME")->capture_default_str();
  app.add_option("--seq-len", study.tokens, "tokens of a packed sequence")->capture_default_str();
  app.add_option("--block", study.block, "B")->capture_default_str();
  app.add_option("--home", study.home)->capture_default_str();
  app.add_option("--cp", study.cp)->capture_default_str();
  app.add_option("--head-shards", study.head_shards, "H")->capture_default_str();
  app.add_option("--kv-heads", study.kv_heads)->capture_default_str();
  app.add_option("--windows", study.windows, "windows of 128 sequences")->capture_default_str();
  app.add_option("--seed", study.seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto pools = libra::vrsp_pools(study);
  using libra::Fetch;
  using libra::PlacerKind;
  libra::study_placer(study, pools, PlacerKind::kNone, Fetch::kPrefix);
  libra::study_placer(study, pools, PlacerKind::kUlysses, Fetch::kPrefix);
  libra::study_placer(study, pools, PlacerKind::kPaper, Fetch::kWhole);
  libra::study_placer(study, pools, PlacerKind::kPaper, Fetch::kPrefix);
  libra::study_placer(study, pools, PlacerKind::kReserve, Fetch::kPrefix);
}
