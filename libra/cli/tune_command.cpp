// libra tune: which pool size, tiles and chunks train this corpus fastest on this cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <mutex>
#include <optional>

#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/cli/command.h"
#include "libra/cli/option_parsing.h"
#include "libra/cli/sim_options.h"
#include "libra/cli/text_table.h"
#include "libra/plan/rules.h"
#include "libra/sim/tune.h"

namespace libra::cli {
namespace {

constexpr const char* kExample =
    "Example:\n"
    "  libra tune --corpus data/mix.npy --oversize split --seq-len 256K --model qwen3-8b \\\n"
    "    --cluster hgx-h200 --gpus 256 --cp 8 --gbs 128";

struct Options {
  SimOptions sim;
  std::optional<std::int64_t> memory_cap;
  double wanted_r = 0.01;
};

/// What is there already, to compare with.
constexpr const char* kDoingNothing[] = {"ulysses", "none"};

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

/// H and M are searched. Until then they are what `simulate` takes, or what these heads allow: H =
/// TP cuts between KV heads, and one chunk is always legal.
Scenario scenario_of(SimOptions options) {
  try {
    return make_scenario(options);
  } catch (const ConfigError&) {
    options.head_shards = options.tp;
    options.chunks = 1;
    return make_scenario(options);  // if that was not the reason, says it again
  }
}

TuneResult tuned(const Options& options, const Scenario& scenario, const SimWindows& windows,
                 const Console& console) {
  std::mutex mutex;
  std::unique_ptr<Progress> progress;
  std::int64_t shown = 0;  // of this round; threads may come in another order than they counted
  TuneOptions tune_options;
  tune_options.memory_cap_bytes = static_cast<double>(options.memory_cap.value_or(0));
  tune_options.wanted_r_minus_1 = options.wanted_r;
  tune_options.threads = options.sim.threads;
  tune_options.advance = [&](std::int64_t, std::int64_t total) {
    const std::lock_guard lock(mutex);
    if (!progress) progress = std::make_unique<Progress>(console, "simulating", total);
    progress->advance();
    if (++shown < total) return;
    progress.reset();
    shown = 0;
  };
  return tune(scenario, windows.windows, tune_options);
}

Simulation doing_nothing(const Environment& environment, const SimWindows& windows,
                         const Options& options) {
  std::vector<const Method*> methods;
  for (const char* const name : kDoingNothing) methods.push_back(&find_method(name));
  return simulate(environment, windows.windows, methods, {options.sim.threads, {}});
}

std::string ranked_text(const TuneResult& result) {
  TextTable table({"options", "step s", "+-", "tok/GPU/s", "behind", "memory"});
  for (const Verdict& v : result.ranked) {
    table.add({candidate_options(v.candidate), fmt::format("{:.2f}", v.step_s),
               fmt::format("{:.2f}", v.step_s_deviation), fmt::format("{:.0f}", v.tokens_per_gpu_s),
               fmt::format("{:.1f}% +- {:.1f}", 100 * v.behind, 100 * v.behind_error),
               bytes_text(v.memory_bytes)});
  }
  return table.text();
}

std::string nothing_text(const TuneResult& result, const Simulation& nothing) {
  std::string text;
  for (const MethodFigures& f : nothing.methods) {
    if (!f.skipped.empty()) {
      text += fmt::format("  {} is left out: {}\n", f.method->name, f.skipped);
      continue;
    }
    const double gain = result.ranked.front().tokens_per_gpu_s / f.tokens_per_gpu_s;
    text +=
        fmt::format("  {}: {:.0f} tokens/s a GPU, {:.2f} s a step; the best is {:.2f} x as fast\n",
                    f.method->name, f.tokens_per_gpu_s, f.step_s, gain);
  }
  return text;
}

std::string evenness_text(const TuneResult& result, double wanted) {
  std::string text;
  for (const PoolEvenness& p : result.evenness) {
    text += fmt::format("{}P {}: {:.4f}", text.empty() ? "  " : ", ", p.pool, p.r_minus_1);
  }
  return fmt::format(
      "Pools by VRSP, R - 1 (the heaviest sequence is {:.1f} x the mean):\n{}\n"
      "  R - 1 <= {} needs P {}\n",
      result.heaviest_over_mean, text, wanted, result.needed_pool);
}

std::string sureness_text(const TuneResult& result) {
  const Verdict& best = result.ranked.front();
  if (result.ranked.size() < 2) return "There is no runner-up.\n";
  const Verdict& second = result.ranked[1];
  if (best.step_seconds.size() < 2) {
    return fmt::format("The best differs from the next by {:.2f}%; one step cannot say how sure.\n",
                       100 * second.behind);
  }
  const bool sure = second.behind > 2 * second.behind_error;
  return fmt::format("The best differs from the next by {:.2f}% +- {:.2f} over {} steps: {}.\n",
                     100 * second.behind, 100 * second.behind_error, best.step_seconds.size(),
                     sure ? "more than twice its standard error"
                          : "within twice its standard error, either will do");
}

Json to_json(const Verdict& v) {
  const Candidate& c = v.candidate;
  return {{"options", candidate_options(c)},
          {"pool", c.pool},
          {"block", c.block_tokens},
          {"head_shards", c.head_shards},
          {"chunks", c.chunks},
          {"tau", c.tau_ppm / 1e6},
          {"placer", placer_name(c.placer)},
          {"home", home_name(c.home)},
          {"step_s", v.step_s},
          {"step_s_deviation", v.step_s_deviation},
          {"step_seconds", v.step_seconds},
          {"tokens_per_gpu_s", v.tokens_per_gpu_s},
          {"behind", v.behind},
          {"behind_error", v.behind_error},
          {"memory_bytes", v.memory_bytes}};
}

Json to_json(const TuneResult& result, const Simulation& nothing, const Options& options) {
  Json json;
  json["best"] = to_json(result.ranked.front());
  json["runners_up"] = Json::array();
  for (std::size_t i = 1; i < result.ranked.size(); ++i) {
    json["runners_up"].push_back(to_json(result.ranked[i]));
  }
  for (const MethodFigures& f : nothing.methods) {
    json["doing_nothing"][std::string(f.method->name)] =
        f.skipped.empty() ? Json{{"step_s", f.step_s}, {"tokens_per_gpu_s", f.tokens_per_gpu_s}}
                          : Json{{"skipped", f.skipped}};
  }
  json["evenness"] = Json::array();
  for (const PoolEvenness& p : result.evenness) {
    json["evenness"].push_back({{"pool", p.pool}, {"r_minus_1", p.r_minus_1}});
  }
  json["heaviest_over_mean"] = result.heaviest_over_mean;
  json["wanted_r_minus_1"] = options.wanted_r;
  json["needed_pool"] = result.needed_pool;
  json["candidates"] = result.candidates;
  json["over_memory_cap"] = result.over_cap;
  json["memory_cap_bytes"] = result.cap_bytes;
  return json;
}

int run(const Options& options, const Console& console) {
  Report report(console, options.sim.json);
  const Environment environment(scenario_of(options.sim));
  const Scenario& scenario = environment.scenario();
  const Corpus corpus = read(options.sim.corpus);
  const SimWindows windows = make_windows(corpus, options.sim);
  const TuneResult result = tuned(options, scenario, windows, console);
  const Simulation nothing = doing_nothing(environment, windows, options);
  report.text() << describe(scenario, options.sim, corpus, windows)
                << fmt::format("\nBest of {} candidates ({} over {} a GPU), whole steps\n",
                               result.candidates, result.over_cap, bytes_text(result.cap_bytes))
                << ranked_text(result) << sureness_text(result) << "\nDoing nothing\n"
                << nothing_text(result, nothing) << '\n'
                << evenness_text(result, options.wanted_r) << "\nPaste\n  "
                << candidate_options(result.ranked.front().candidate) << '\n';
  Json json = scenario_json(scenario, options.sim, corpus, windows);
  json.update(to_json(result, nothing, options));
  report.finish(json);
  return kGood;
}

}  // namespace

Command add_tune_command(CLI::App& parent) {
  auto* app = parent.add_subcommand("tune", "Find the pool size and tiles that train fastest");
  const auto options = std::make_shared<Options>();
  options->sim.pool = 1;  // searched
  add_sim_options(*app, options->sim);
  add_parsed(
      *app, "--memory-cap",
      [options](const std::string& text) {
        options->memory_cap = parse_size(text);
        require_positive("the cap", *options->memory_cap);
      },
      "Most bytes of a GPU (default: the cluster's)")
      ->type_name("BYTES");
  add_parsed(
      *app, "--wanted-r",
      [options](const std::string& text) { options->wanted_r = parse_decimal(text, 100); },
      "R - 1 for which the needed P is said")
      ->type_name("X")
      ->default_str("0.01");
  app->footer(kExample);
  return {app, [options](const Console& console) { return run(*options, console); }};
}

}  // namespace libra::cli
