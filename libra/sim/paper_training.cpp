// Training: Figures 1 and 13, 11 and 14.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "libra/sim/paper_workload.h"
#include "libra/sim/spread.h"

namespace libra {
namespace {

using Windows = std::vector<std::vector<PackedSequence>>;

/// Layers that the test cluster had room for are not published; these fit 141 GB.
constexpr std::int32_t kLayers = 24;

Scenario training_scenario(const PaperWorkload& workload, const char* model, std::int32_t cp,
                           std::int32_t pp, std::int32_t dp, const PaperOptions& options) {
  Scenario scenario = paper_scenario(workload, options);
  scenario.model = find_model(model);
  scenario.model.layers = std::min(scenario.model.layers, kLayers);
  scenario.linear = find_linear_shape(model);
  scenario.plan.shape = scenario.model.attention;
  scenario.plan.cp = cp;
  scenario.pp = pp;
  scenario.dp = dp;
  scenario.ep = scenario.linear.moe() ? 8 : 1;
  return scenario;
}

std::vector<MethodFigures> figures(const Scenario& scenario, const Windows& windows,
                                   const std::vector<const char*>& names, int threads) {
  return simulate(Environment(scenario), windows, methods_named(names), {threads, {}}).methods;
}

double throughput(const MethodFigures& of_method, const Scenario& scenario) {
  return of_method.tokens_per_gpu_s * scenario.gpus();
}

/// Figure 13 at DP 16, of the ideal 16.
struct Scaling {
  double ulysses;
  double libra;
};
constexpr Scaling kFigure13[] = {{7.63, 13.66}, {4.42, 11.25}};

void add_scaling(std::size_t workload_idx, const PaperOptions& options,
                 std::vector<PaperRow>& rows) {
  const PaperWorkload& workload = kPaperWorkloads[workload_idx];
  const std::vector<const char*> names = {"ulysses", "libra-paper", "libra"};
  const Windows windows = paper_windows(workload, workload.gbs, options.steps, options.seed);
  std::vector<double> alone;
  for (const std::int32_t dp : {1, 2, 4, 8, 16}) {
    Scenario scenario = training_scenario(workload, "qwen3-30b-a3b", workload.cp, 1, dp, options);
    scenario.pool = std::min(8, dp);
    std::vector<double> scaled;
    for (const MethodFigures& f : figures(scenario, windows, names, options.threads)) {
      scaled.push_back(throughput(f, scenario));
    }
    if (dp == 1) alone = scaled;
    const bool said = dp == 16;
    const Scaling paper = kFigure13[workload_idx];
    rows.push_back({row_name(workload, fmt::format("DP {}, Ulysses", dp)),
                    said ? std::optional(paper.ulysses) : std::nullopt,
                    scaled[0] / alone[0],
                    {}});
    rows.push_back({row_name(workload, fmt::format("DP {}, Libra", dp)),
                    said ? std::optional(paper.libra) : std::nullopt, scaled[1] / alone[1],
                    scaled[2] / alone[2]});
  }
}

}  // namespace

PaperResult paper_dp_scaling(const PaperOptions& options) {
  PaperResult result{"x own throughput at DP 1",
                     fmt::format("qwen3-30b-a3b, {} layers, EP 8, recompute; the gradient "
                                 "synchronisation is not overlapped",
                                 kLayers),
                     {}};
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    add_scaling(i, options, result.rows);
  }
  return result;
}

namespace {

struct EndToEnd {
  std::int32_t cp;
  std::int32_t pp;
  std::int32_t pool;
};
constexpr EndToEnd kFigure11[] = {{4, 4, 8}, {16, 2, 4}};

void add_end_to_end(std::size_t workload_idx, const char* model, const PaperOptions& options,
                    const Windows& windows, std::vector<PaperRow>& rows) {
  const EndToEnd layout = kFigure11[workload_idx];
  for (const std::int32_t gpus : {64, 128, 256}) {
    const std::int32_t dp = gpus / layout.cp / layout.pp;
    Scenario scenario =
        training_scenario(kPaperWorkloads[workload_idx], model, layout.cp, layout.pp, dp, options);
    scenario.pool = std::min(layout.pool, dp);
    const std::vector<MethodFigures> f =
        figures(scenario, windows, {"ulysses", "wlb", "libra-paper", "libra"}, options.threads);
    const std::string what =
        row_name(kPaperWorkloads[workload_idx], fmt::format("{}, {} GPUs, ", model, gpus));
    const double ulysses = f[0].tokens_per_gpu_s;
    rows.push_back({what + "WLB-LLM", {}, f[1].tokens_per_gpu_s / ulysses, {}, work_share(&f[1])});
    rows.push_back(
        {what + "Libra", {}, f[2].tokens_per_gpu_s / ulysses, f[3].tokens_per_gpu_s / ulysses});
  }
}

}  // namespace

PaperResult paper_end_to_end(const PaperOptions& options) {
  PaperResult result{
      "x Ulysses",
      fmt::format("at most {} layers, EP 8, recompute, 1F1B; the paper: Libra 1.58 to 3.24 x "
                  "Ulysses, over WLB-LLM 1.09 to 1.14 at 64 GPUs and 1.44 on average at 256",
                  kLayers),
      {}};
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const PaperWorkload& workload = kPaperWorkloads[i];
    const Windows windows = paper_windows(workload, workload.gbs, options.steps, options.seed);
    for (const char* const model : {"qwen3-8b", "qwen3-30b-a3b", "qwen3-235b-a22b"}) {
      add_end_to_end(i, model, options, windows, result.rows);
    }
  }
  return result;
}

namespace {

/// Figure 14, over Libra's mean of the iteration: least, mean, most; 0: not published.
struct Spread {
  double ulysses[3];
  double libra[3];
};
constexpr Spread kFigure14[] = {{{0, 0, 6.98}, {0, 1, 2.63}},
                                {{0.02, 4.14, 23.1}, {0.52, 1, 1.57}}};

/// Least, mean and most over all iterations, each time over the mean of `reference` in its
/// iteration.
std::array<double, 3> spread_of(const MethodFigures& figures, const MethodFigures& reference) {
  std::vector<double> over_mean;
  for (std::size_t window = 0; window < figures.microbatch_ms.size(); ++window) {
    const double mean_ms = mean(reference.microbatch_ms[window]);
    for (const double ms : figures.microbatch_ms[window]) over_mean.push_back(ms / mean_ms);
  }
  const auto [least, most] = std::minmax_element(over_mean.begin(), over_mean.end());
  return {*least, mean(over_mean), *most};
}

void add_spread(const PaperWorkload& workload, const char* name, const double (&paper)[3],
                const std::array<double, 3>& faithful,
                const std::optional<std::array<double, 3>>& shipped, std::vector<PaperRow>& rows) {
  constexpr const char* kParts[] = {"min", "mean", "max"};
  for (std::size_t part = 0; part < std::size(kParts); ++part) {
    PaperRow row{row_name(workload, fmt::format("{}, {}", name, kParts[part])), {}, {}, {}};
    if (paper[part] > 0) row.paper = paper[part];
    row.faithful = faithful.at(part);
    if (shipped) row.shipped = shipped->at(part);
    rows.push_back(std::move(row));
  }
}

}  // namespace

PaperResult paper_microbatches(const PaperOptions& options) {
  constexpr std::int64_t kIterations = 15;
  PaperResult result{
      "x Libra's mean of the iteration",
      fmt::format("qwen3-30b-a3b, {} layers, EP 8; DP 4, PP 2, P 4; 15 iterations", kLayers),
      {}};
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const PaperWorkload& workload = kPaperWorkloads[i];
    Scenario scenario = training_scenario(workload, "qwen3-30b-a3b", workload.cp, 2, 4, options);
    scenario.pool = 4;
    const Windows windows = paper_windows(workload, workload.gbs, kIterations, options.seed);
    const std::vector<MethodFigures> f =
        figures(scenario, windows, {"ulysses", "libra-paper", "libra"}, options.threads);
    add_spread(workload, "Ulysses", kFigure14[i].ulysses, spread_of(f[0], f[1]), {}, result.rows);
    add_spread(workload, "Libra", kFigure14[i].libra, spread_of(f[1], f[1]), spread_of(f[2], f[2]),
               result.rows);
  }
  return result;
}

}  // namespace libra
