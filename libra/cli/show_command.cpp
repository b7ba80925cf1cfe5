// libra show: what a saved plan says.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/cli/command.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/plan_file.h"
#include "libra/cli/report.h"
#include "libra/cli/text_table.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/plan_json.h"
#include "libra/plan/traffic.h"
#include "libra/plan/traffic_bound.h"

namespace libra::cli {
namespace {

constexpr std::int32_t kMostWorkersShown = 64;

struct Options {
  std::string plan;
  std::string json;
};

std::string options_text(const PlanOptions& o) {
  return fmt::format(
      "heads      {} query, {} KV, dim {} / {}, {}\n"
      "workers    CP {}, TP {} in it, {} home layout\n"
      "tiles      B {}, H {}, M {}\n"
      "placement  {}, fetch {}, tau {}, backward {}{}{}\n",
      o.shape.q_heads, o.shape.kv_heads, o.shape.head_dim, o.shape.value_dim, dtype_name(o.storage),
      o.cp, o.tp, home_name(o.home), format_size(o.block_tokens), o.head_shards, o.chunks,
      placer_name(o.placer), fetch_name(o.fetch), o.tau_ppm / 1e6, backward_name(o.backward),
      o.local_first ? ", local first" : "", o.lse_goes_home() ? ", LSE goes home" : "");
}

std::string sequences_text(const PoolPlan& plan) {
  TextTable table({"sequence", "tokens", "samples", "longest", "padding"});
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const PackedSequence& sequence = plan.sequences[i];
    const auto& samples = sequence.sample_tokens;
    const std::int64_t used = std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
    const auto longest = std::max_element(samples.begin(), samples.end());
    table.add({fmt::format("{}", i), with_commas(sequence.tokens),
               with_commas(static_cast<long long>(samples.size())),
               with_commas(longest == samples.end() ? 0 : *longest),
               with_commas(sequence.tokens - used)});
  }
  return table.text();
}

std::string workers_text(const PoolPlan& plan) {
  const std::vector<std::int64_t>& load = plan.placement.load;
  const std::int64_t heaviest = *std::max_element(load.begin(), load.end());
  const double mean = static_cast<double>(heaviest) / plan.placement.max_over_mean();
  const TrafficReport forward = forward_traffic(plan);
  const auto in = forward.in_by_worker();
  const auto out = forward.out_by_worker();
  const auto memory = plan_memory(plan);
  TextTable table({"worker", "load/mean", "in", "out", "memory", ""});
  const std::int32_t shown = std::min(plan.workers(), kMostWorkersShown);
  for (std::int32_t w = 0; w < shown; ++w) {
    const double share = mean > 0 ? static_cast<double>(load[at(w)]) / mean : 0;
    const double of_heaviest = heaviest > 0 ? share * mean / static_cast<double>(heaviest) : 0;
    table.add({fmt::format("{}", w), fmt::format("{:.3f}", share), format_bytes(in[at(w)]),
               format_bytes(out[at(w)]), format_bytes(memory[at(w)].bytes()),
               fmt::format("{:<24}", bar(of_heaviest, 24))});
  }
  const std::int32_t left = plan.workers() - shown;
  return table.text() + (left > 0 ? fmt::format("  and {} more workers (--json)\n", left) : "");
}

std::string summary_text(const PoolPlan& plan) {
  return fmt::format(
      "tiles      {} in {} blocks, {} moved\n"
      "load       max/mean {:.4f}\n"
      "bytes      per layer: forward {} ({:.2f} times the bound), backward {} (keep) or {} "
      "(refetch)\n"
      "memory     up to {} a worker beyond the inputs\n",
      with_commas(plan.tiling.tiles()),
      with_commas(static_cast<long long>(plan.tiling.blocks.size())),
      with_commas(plan.tiles_moved()), plan.placement.max_over_mean(),
      format_bytes(forward_traffic(plan).total()), bytes_over_bound(plan),
      format_bytes(backward_traffic(plan, BackwardMode::kKeep).total()),
      format_bytes(backward_traffic(plan, BackwardMode::kRefetch).total()),
      format_bytes(max_memory_bytes(plan)));
}

int run(const Options& options, const Console& console) {
  Report report(console, options.json);
  const PoolPlan plan = read_plan_file(options.plan);
  report.text() << fmt::format("plan       {}, fingerprint {:016x}\n", options.plan,
                               plan_fingerprint(plan))
                << options_text(plan.options) << summary_text(plan) << '\n'
                << sequences_text(plan) << '\n'
                << workers_text(plan);
  report.finish(Json::parse(plan_to_json(plan)));
  return kGood;
}

}  // namespace

Command add_show_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("show", "Summarise a saved plan");
  const auto options = std::make_shared<Options>();
  app->add_option("PLAN", options->plan, "A file that libra plan --save wrote")->required();
  add_json_option(*app, options->json);
  app->footer("Example:\n  libra show pool0.plan\n  libra show pool0.plan --json -");
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
