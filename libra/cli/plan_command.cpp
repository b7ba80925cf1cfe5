// libra plan: plans every pool of some windows, and says how balanced they are and what moves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/cli/command.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/plan_study.h"
#include "libra/cli/text_table.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Example:\n"
    "  libra plan --corpus synthetic:paper-256k --seq-len 256K --gbs 128 --dp 32 --cp 8 \\\n"
    "    --pool 8 --block 4096 --head-shards 2 --model qwen3-8b --json plan.json";

struct Options {
  JobOptions job;
  std::int32_t steps = 10;
  std::string save;
};

Json range_json(const UsedRange& range, double unit) {
  return {{"smallest", range.smallest / unit}, {"largest", range.largest / unit}};
}

Json to_json(const PlacerFigures& figures) {
  if (!figures.plan.skipped.empty()) return {{"skipped", figures.plan.skipped}};
  const PlanOptions& options = figures.plan.options;
  return {{"head_shards", options.head_shards},
          {"head_shards_used", range_json(figures.head_shards, 1)},
          {"chunks", range_json(figures.chunks, 1)},
          {"block", options.block_tokens},
          {"fetch", fetch_name(options.fetch)},
          {"tau", options.tau_ppm / 1e6},
          {"tau_used", range_json(figures.tau_ppm, 1e6)},
          {"pools", figures.pools},
          {"refetch_pools", figures.refetch_pools},
          {"max_over_mean",
           {{"mean", figures.max_over_mean_mean}, {"worst", figures.max_over_mean_worst}}},
          {"bytes_total", figures.bytes_total},
          {"bytes_inter_node", figures.bytes_inter_node},
          {"bytes_bound", figures.bytes_bound},
          {"bytes_over_bound",
           figures.bytes_bound > 0 ? Json(figures.bytes_total / figures.bytes_bound) : Json()},
          {"max_in_bytes", figures.max_in_bytes},
          {"max_out_bytes", figures.max_out_bytes},
          {"bytes_backward", figures.bytes_backward},
          {"bytes_backward_keep", figures.bytes_backward_keep},
          {"bytes_backward_refetch", figures.bytes_backward_refetch},
          {"tiles", figures.tiles},
          {"tiles_moved", figures.tiles_moved},
          {"memory",
           {{"arena_bytes", figures.arena_bytes},
            {"mean_bytes", figures.memory_bytes},
            {"max_bytes", figures.memory_bytes_max}}},
          {"plan_us", figures.plan_us}};
}

Json to_json(const Job& job, const PlanStudy& study) {
  Json json = job_json(job);
  json["steps"] = study.steps;
  json["epochs"] = study.epochs;
  json["cost_us"] = study.cost_us;
  json["grouping_us"] = study.grouping_us;
  for (std::size_t i = 0; i < kGroupings.size(); ++i) {
    json["r_minus_1"][std::string(grouping_name(kGroupings[i]))] = study.r_minus_1[i];
  }
  json["r_by_index_minus_1"] = study.r_by_index_minus_1;
  json["pool_order"] = study.order;
  for (const PlacerFigures& figures : study.placers) {
    json["placers"][std::string(placer_name(figures.plan.placer))] = to_json(figures);
  }
  return json;
}

std::string grouping_text(const Job& job, const PlanStudy& study) {
  TextTable table({"grouping", "R - 1"});
  for (std::size_t i = 0; i < kGroupings.size(); ++i) {
    table.add(
        {std::string(grouping_name(kGroupings[i])), fmt::format("{:.4f}", study.r_minus_1[i])});
  }
  return fmt::format(
      "Pools: heaviest over mean (R), mean of {} windows; {} is used and takes {:.1f} us\n{}"
      "  R - 1 of the pools of one GA index, {} at once: {:.4f}\n",
      study.steps, grouping_name(job.grouping()), study.grouping_us, table.text(),
      job.pools_at_once(), study.r_by_index_minus_1);
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

std::string range_text(const UsedRange& range) {
  if (range.smallest == range.largest) return fmt::format("{}", range.largest);
  return fmt::format("{}-{}", range.smallest, range.largest);
}

std::string note_text(const PlacerFigures& figures) {
  const PlacerPlan& plan = figures.plan;
  const std::string_view name = placer_name(plan.placer);
  if (!plan.skipped.empty()) return fmt::format("  {} is left out: {}\n", name, plan.skipped);
  std::string notes;
  if (figures.tau_ppm.largest > plan.options.tau_ppm) {
    notes = fmt::format("  {}: tau up to {:.3g} where the links are slow\n", name,
                        figures.tau_ppm.largest / 1e6);
  }
  if (figures.refetch_pools == 0 || plan.options.backward == BackwardMode::kRefetch) return notes;
  return notes + fmt::format("  {}: {} of {} pools refetch, to stay under the memory cap\n", name,
                             figures.refetch_pools, figures.pools);
}

std::string placer_text(const PlanStudy& study) {
  TextTable table({"placer", "H", "M", "fetch", "max/mean", "worst", "moved", "bytes", "/bound",
                   "inter-node", "max in", "max out", "backward", "memory", "plan us"});
  std::string notes;
  for (const PlacerFigures& f : study.placers) {
    notes += note_text(f);
    if (!f.plan.skipped.empty()) continue;
    const PlanOptions& options = f.plan.options;
    table.add({std::string(placer_name(f.plan.placer)), range_text(f.head_shards),
               range_text(f.chunks), std::string(fetch_name(options.fetch)),
               fmt::format("{:.3f}", f.max_over_mean_mean),
               fmt::format("{:.3f}", f.max_over_mean_worst),
               fmt::format("{:.1f}%", f.tiles > 0 ? 100 * f.tiles_moved / f.tiles : 0),
               bytes_text(f.bytes_total),
               f.bytes_bound > 0 ? fmt::format("{:.2f}", f.bytes_total / f.bytes_bound) : "-",
               bytes_text(f.bytes_inter_node), bytes_text(f.max_in_bytes),
               bytes_text(f.max_out_bytes), bytes_text(f.bytes_backward),
               bytes_text(f.memory_bytes), fmt::format("{:.0f}", f.plan_us)});
  }
  return fmt::format(
      "Workers of a pool: heaviest over mean; bytes of a pool per layer, forward;\n"
      "/bound: over the fewest bytes that could balance as well\n{}{}",
      table.text(), notes);
}

int run(const Options& options, const Console& console) {
  if (options.steps < 1) throw ConfigError("--steps is 0: it must be at least 1");
  Report report(console, options.job.json);
  report.add_file(options.save);
  Job job(options.job,
          {PlacerKind::kNone, PlacerKind::kUlysses, PlacerKind::kPaper, PlacerKind::kBalanced});
  const PlanStudy study = study_plans(job, options.steps, options.save, console);
  report.text() << describe(job) << '\n' << grouping_text(job, study) << '\n' << placer_text(study);
  report.write(options.save, study.first_plan);
  if (!options.save.empty()) {
    report.text() << fmt::format("\nsaved {}: pool 0 of window 0, placer {}\n", options.save,
                                 placer_name(saved_placer(job).placer));
  }
  report.finish(to_json(job, study));
  return kGood;
}

}  // namespace

Command add_plan_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("plan", "Plan the pools of a corpus's windows");
  const auto options = std::make_shared<Options>();
  add_job_options(*app, options->job);
  app->get_option("--placer")->default_str("none,ulysses,paper,balanced");
  app->add_option("--cluster", options->job.pool.cluster,
                  "Links that placer balanced plans for, a preset or a JSON file: never what they "
                  "make slower than moving nothing; needs --cost seconds")
      ->type_name("NAME|FILE");
  add_count(*app, "--steps", options->steps, "Windows to plan; results are means over them");
  app->add_option("--save", options->save,
                  "Write the plan of the first window's pool 0, by the last placer named; JSON if "
                  "the name ends in .json")
      ->type_name("FILE");
  app->footer(kExample);
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
