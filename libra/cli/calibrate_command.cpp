// libra calibrate: measures this machine's GPU into a device profile, for planning in seconds and
// for the simulator.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/cli/command.h"
#include "libra/cli/gpu_work.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/report.h"
#include "libra/cli/text_table.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Examples:\n"
    "  libra calibrate --output my-gpu.json\n"
    "  libra plan ... --cost seconds --device-profile my-gpu.json\n"
    "  libra calibrate --equal-work-steps 60 --copies --json report.json     (on two GPUs or more)";

struct Options {
  CalibrationOptions calibration;
  std::string name;
  std::string output;
  std::string json;
  bool block_rates = false;
  std::int32_t equal_work_steps = 0;
  bool copies = false;
};

const std::vector<std::int64_t> kBlocks = {512, 1024, 2048, 4096, 8192, 16384, 32768};
const std::vector<std::int32_t> kHeads = {1, 2, 4, 8, 16, 32};

// (slowest - fastest) / mean of each step: mean and largest.
struct Spread {
  double mean = 0;
  double largest = 0;
};

Spread spread_of(const std::vector<std::vector<double>>& steps) {
  Spread spread;
  for (const std::vector<double>& step : steps) {
    double sum = 0;
    for (const double seconds : step) sum += seconds;
    const auto [fastest, slowest] = std::minmax_element(step.begin(), step.end());
    const double relative = (*slowest - *fastest) * static_cast<double>(step.size()) / sum;
    spread.mean += relative / static_cast<double>(steps.size());
    spread.largest = std::max(spread.largest, relative);
  }
  return spread;
}

std::string rates_text(const std::vector<BlockRate>& rates, double BlockRate::*pass,
                       const char* title) {
  double best = 0;
  for (const BlockRate& rate : rates) best = std::max(best, rate.*pass);
  std::vector<std::string> head = {title};
  for (const std::int32_t heads : kHeads) head.push_back(fmt::format("{} heads", heads));
  TextTable table(head);
  for (std::size_t i = 0; i < rates.size(); i += kHeads.size()) {
    std::vector<std::string> row = {format_size(rates[i].block)};
    for (std::size_t h = 0; h < kHeads.size(); ++h) {
      row.push_back(fmt::format("{:.2f}", rates[i + h].*pass / best));
    }
    table.add(row);
  }
  return fmt::format("\n{}  1.00 is {:.0f} TF/s\n", table.text(), best);
}

Json rates_json(const std::vector<BlockRate>& rates) {
  Json json = Json::array();
  for (const BlockRate& rate : rates) {
    json.push_back({{"block", rate.block},
                    {"heads", rate.heads},
                    {"forward_tflops", rate.forward_tflops},
                    {"backward_tflops", rate.backward_tflops}});
  }
  return json;
}

// A progress bar that is told what has been done of what.
class Steps {
 public:
  Steps(const Console& console, std::string what) : console_(console), what_(std::move(what)) {}

  OnStep callback() {
    return [this](std::int64_t, std::int64_t total) {
      if (!progress_) progress_ = std::make_unique<Progress>(console_, what_, total);
      progress_->advance();
    };
  }

 private:
  const Console& console_;
  std::string what_;
  std::unique_ptr<Progress> progress_;
};

void calibrate_profile(const Options& options, const Console& console, Report& report, Json& json) {
  Steps steps(console, "calibrating");
  DeviceProfileData data = measure_profile(options.calibration, steps.callback());
  if (!options.name.empty()) data.name = options.name;
  report.write(options.output, format_device_profile(data));
  report.text() << fmt::format(
      "device   {}: {:.1f} us a call, {:.0f} ns an entry forward, {:.0f} ns backward, additions "
      "at {:.0f} GB/s\n"
      "profile  {}\n",
      data.name, static_cast<double>(data.launch_ps) * 1e-6,
      static_cast<double>(data.forward.entry_ps) * 1e-3,
      static_cast<double>(data.backward.entry_ps) * 1e-3,
      static_cast<double>(data.add_mb_per_s) * 1e-3, options.output);
  json["name"] = data.name;
  json["launch_us"] = static_cast<double>(data.launch_ps) * 1e-6;
}

void report_block_rates(const Options& options, const Console& console, Report& report,
                        Json& json) {
  Steps steps(console, "block rates");
  const auto rates =
      measure_block_rates(options.calibration.device, kBlocks, kHeads, steps.callback());
  report.text() << rates_text(rates, &BlockRate::forward_tflops, "forward, block")
                << rates_text(rates, &BlockRate::backward_tflops, "backward, block");
  json["block_rates"] = rates_json(rates);
}

void report_equal_work(const Options& options, const Console& console, Report& report, Json& json) {
  Steps steps(console, "equal work");
  const auto seconds = measure_equal_work(options.equal_work_steps, steps.callback());
  const Spread spread = spread_of(seconds);
  report.text() << fmt::format(
      "\nequal work on {} GPUs, {} steps: (slowest - fastest) / mean is {:.2f}% on average, "
      "{:.2f}% "
      "at most\n",
      seconds.front().size(), seconds.size(), 100 * spread.mean, 100 * spread.largest);
  json["equal_work"] = {{"gpus", seconds.front().size()},
                        {"steps", seconds.size()},
                        {"spread_mean", spread.mean},
                        {"spread_max", spread.largest}};
}

void report_copies(const Console& console, Report& report, Json& json) {
  Steps steps(console, "copies");
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4) sizes.push_back(bytes);
  TextTable table({"GB/s each way", "copy engines", "NCCL"});
  for (const CopyRate& rate : measure_copies(sizes, steps.callback())) {
    table.add({format_bytes(rate.bytes), fmt::format("{:.0f}", rate.copy_engine),
               rate.nccl > 0 ? fmt::format("{:.0f}", rate.nccl) : "-"});
    json["copies"].push_back(
        {{"bytes", rate.bytes}, {"copy_engine_gb_s", rate.copy_engine}, {"nccl_gb_s", rate.nccl}});
  }
  report.text() << "\n" << table.text();
}

void check(const Options& options) {
  const bool wanted = !options.output.empty() || options.block_rates || options.copies ||
                      options.equal_work_steps > 0;
  if (wanted) return;
  throw ConfigError(
      "nothing to measure: give --output, --block-rates, --equal-work-steps or --copies");
}

int run(const Options& options, const Console& console) {
  check(options);
  Report report(console, options.json);
  report.add_file(options.output);
  Json json;
  if (!options.output.empty()) calibrate_profile(options, console, report, json);
  if (options.block_rates) report_block_rates(options, console, report, json);
  if (options.equal_work_steps > 0) report_equal_work(options, console, report, json);
  if (options.copies) report_copies(console, report, json);
  report.finish(json);
  return kGood;
}

}  // namespace

Command add_calibrate_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("calibrate", "Measure this machine's GPUs");
  const auto options = std::make_shared<Options>();
  app->add_option("--output", options->output, "Measure a device profile and write it here")
      ->type_name("FILE");
  app->add_option("--name", options->name, "The profile's name (default: the device's)")
      ->type_name("NAME");
  add_count(*app, "--device", options->calibration.device, "Which GPU (default: 0)");
  app->add_flag("--block-rates", options->block_rates,
                "Rates by block length and heads per call, normalised to the best");
  add_count(*app, "--equal-work-steps", options->equal_work_steps,
            "Run the same attention on all GPUs for so many steps, and say how far they differ")
      ->type_name("N");
  app->add_flag("--copies", options->copies, "Bandwidth between GPUs 0 and 1 by size");
  add_json_option(*app, options->json);
  app->footer(kExample);
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
