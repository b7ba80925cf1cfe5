// libra simulate: what a training step takes with each method, from sample lengths alone.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <mutex>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/cli/command.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/sim_json.h"
#include "libra/cli/sim_options.h"
#include "libra/cli/text_table.h"
#include "libra/sim/simulate.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Example:\n"
    "  libra simulate --corpus synthetic:paper-256k --seq-len 256K --model qwen3-8b \\\n"
    "    --cluster hgx-h200 --gpus 256 --cp 8 --gbs 128 --methods ulysses,wlb,libra --steps 10";

constexpr double kGiga = 1e9;

struct Options {
  SimOptions sim;
  std::vector<const Method*> methods;
};

std::vector<const Method*> parse_methods(const std::string& text) {
  std::vector<const Method*> methods;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Method* const method = &find_method(text.substr(begin, end - begin));
    if (std::find(methods.begin(), methods.end(), method) != methods.end()) {
      throw ConfigError(fmt::format("'{}' is there twice: name each once", method->name));
    }
    methods.push_back(method);
    begin = end + 1;
  }
  return methods;
}

std::vector<const Method*> all_methods() {
  std::vector<const Method*> methods;
  methods.reserve(known_methods().size());
  for (const Method& method : known_methods()) methods.push_back(&method);
  return methods;
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

std::string speedup_text(double speedup) {
  return speedup > 0 ? fmt::format("{:.2f}", speedup) : "-";
}

std::vector<std::string> row(const MethodFigures& f) {
  const double bytes = f.forward_bytes.total() + f.backward_bytes.total();
  const double network = f.forward_bytes.inter_node + f.backward_bytes.inter_node;
  return {fmt::format("{}{}", f.method->name, f.method->step_equivalent ? "" : " *"),
          fmt::format("{:.2f}", f.straggler.mean_ms),
          fmt::format("{:.2f}", f.straggler.max_ms),
          speedup_text(f.speedup_mean),
          speedup_text(f.speedup_max),
          fmt::format("{:.2f}", f.exposed_comm_ms),
          fmt::format("{:.2f}", f.max_over_mean),
          bytes_text(bytes),
          bytes_text(network),
          fmt::format("{:.2f}", f.step_s),
          fmt::format("{:.0f}", f.tokens_per_gpu_s),
          fmt::format("{:.0f}%", 100 * f.efficiency),
          fmt::format("{:.0f}%", 100 * f.bubble_share),
          bytes_text(f.memory_bytes),
          f.plan_us > 0 ? fmt::format("{:.0f}", f.plan_us) : "-"};
}

std::string table_text(const Simulation& simulation, double memory_gb) {
  TextTable table({"method", "mean ms", "max ms", "x mean", "x max", "exposed", "max/mean", "bytes",
                   "inter-node", "step s", "tok/GPU/s", "of ideal", "bubble", "memory", "plan us"});
  std::string notes;
  std::string too_large;
  std::string other_samples;
  for (const MethodFigures& figures : simulation.methods) {
    if (!figures.skipped.empty()) {
      notes += fmt::format("  {} is left out: {}\n", figures.method->name, figures.skipped);
      continue;
    }
    if (!figures.method->step_equivalent) {
      other_samples += fmt::format("{}{} did {:.0f}%", other_samples.empty() ? "" : ", ",
                                   figures.method->name, 100 * figures.work_share);
    }
    if (figures.memory_bytes > memory_gb * kGiga) {
      too_large += fmt::format("{}{}", too_large.empty() ? "" : ", ", figures.method->name);
    }
    table.add(row(figures));
  }
  if (!other_samples.empty()) {
    notes += fmt::format(
        "  * trains an optimizer step on other samples than the others; of the attention work of "
        "these steps {}, the rest still waits\n",
        other_samples);
  }
  if (!too_large.empty()) {
    notes += fmt::format("  more memory than the {} GB of a GPU: {}\n", memory_gb, too_large);
  }
  return table.text() + notes;
}

int run(const Options& options, const Console& console) {
  Report report(console, options.sim.json);
  const Environment environment(make_scenario(options.sim));
  const Scenario& scenario = environment.scenario();
  const Corpus corpus = read(options.sim.corpus);
  const SimWindows windows = make_windows(corpus, options.sim);
  const std::vector<const Method*> methods =
      options.methods.empty() ? all_methods() : options.methods;
  Progress progress(console, "simulating window",
                    simulation_tasks(windows.windows.size(), methods));
  std::mutex mutex;
  const auto advance = [&] {
    const std::lock_guard lock(mutex);
    progress.advance();
  };
  const Simulation simulation =
      simulate(environment, windows.windows, methods, {options.sim.threads, advance});
  report.text()
      << describe(scenario, options.sim, corpus, windows)
      << fmt::format(
             "pools    P {}, B {}, H {}, M {} (libra-paper, distca-emulated: 4)\n\n"
             "Core attention of one layer, forward and backward: the slowest worker (mean "
             "and max over GA indices), over Ulysses; then whole steps\n",
             scenario.pool, format_size(scenario.plan.block_tokens), scenario.plan.head_shards,
             scenario.plan.chunks)
      << table_text(simulation, scenario.cluster.memory_gb);
  report.finish(simulation_json(scenario, options.sim, corpus, windows, simulation));
  return kGood;
}

}  // namespace

Command add_simulate_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("simulate", "Predict training steps with different methods");
  const auto options = std::make_shared<Options>();
  add_sim_options(*app, options->sim);
  add_sim_pool_options(*app, options->sim);
  add_parsed(
      *app, "--methods",
      [options](const std::string& text) { options->methods = parse_methods(text); },
      "Comma-separated, as docs/methods.md describes them (default: all)")
      ->type_name("NAMES");
  app->footer(kExample);
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
