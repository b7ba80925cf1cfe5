// Core attention: Figures 12, 15 and 16.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/base/units.h"
#include "libra/sim/paper_workload.h"

namespace libra {
namespace {

using Windows = std::vector<std::vector<PackedSequence>>;

Simulation simulated(const Scenario& scenario, const Windows& windows,
                     const std::vector<const char*>& names, int threads) {
  return simulate(Environment(scenario), windows, methods_named(names), {threads, {}});
}

/// One method of Figure 12; speedups from the paper's percentages (docs/results.md).
struct Published {
  const char* what;
  const char* faithful;
  const char* shipped;
  double mean[2];  // 256K, 1M; 0: not published
  double max[2];
};

constexpr Published kFigure12[] = {
    {"Ulysses", "ulysses", nullptr, {1, 1}, {1, 1}},
    {"WLB-LLM", "wlb", nullptr, {2.447, 1.488}, {1.002, 1.003}},
    {"WLB-LLM without delay", "wlb-repack", nullptr, {0, 0}, {0, 0}},
    {"DistCA emulated", "distca-emulated", nullptr, {1.347, 2.372}, {1.124, 2.671}},
    {"TAP", "libra-paper-tap", "libra-tap", {0, 0}, {2.694, 1.729}},
    {"TAP + VRSP", "libra-paper-tap-vrsp", "libra-tap-vrsp", {0, 0}, {2.980, 2.343}},
    {"full", "libra-paper", "libra", {2.91, 2.57}, {3.14, 2.90}}};

std::optional<double> published(double value) {
  return value > 0 ? std::optional(value) : std::nullopt;
}

const MethodFigures* figures_of(const Simulation& simulation, const char* name) {
  if (name == nullptr) return nullptr;
  for (const MethodFigures& figures : simulation.methods) {
    if (figures.method->name == name) return &figures;
  }
  return nullptr;
}

std::optional<double> value(const MethodFigures* figures, double MethodFigures::*field) {
  return figures != nullptr ? std::optional(figures->*field) : std::nullopt;
}

}  // namespace

PaperResult paper_stragglers(const PaperOptions& options) {
  PaperResult result{
      "x Ulysses",
      fmt::format("heads of qwen3-8b (256K) and qwen3-30b-a3b (1M); forward and backward; cluster "
                  "{}",
                  options.cluster.name),
      {}};
  std::vector<const char*> names;
  for (const Published& p : kFigure12) {
    names.push_back(p.faithful);
    if (p.shipped != nullptr) names.push_back(p.shipped);
  }
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const PaperWorkload& workload = kPaperWorkloads[i];
    const Windows windows = paper_windows(workload, workload.gbs, options.steps, options.seed);
    const Simulation simulation =
        simulated(paper_scenario(workload, options), windows, names, options.threads);
    for (const bool max : {false, true}) {
      const auto field = max ? &MethodFigures::speedup_max : &MethodFigures::speedup_mean;
      for (const Published& p : kFigure12) {
        const double paper = max ? p.max[i] : p.mean[i];
        result.rows.push_back(
            {row_name(workload, fmt::format("{}, {}", max ? "max" : "mean", p.what)),
             published(paper), value(figures_of(simulation, p.faithful), field),
             value(figures_of(simulation, p.shipped), field),
             work_share(figures_of(simulation, p.faithful))});
      }
    }
  }
  return result;
}

namespace {

/// What Figure 15 says in the text: TAP + VRSP, over Ulysses' mean.
struct SweepPoint {
  std::size_t workload;
  std::int32_t pool;
  double computation;
  double communication;
};
constexpr SweepPoint kFigure15[] = {{0, 4, 0.27, 0.07}, {0, 8, 0.19, 0}, {0, 32, 0.19, 0.77},
                                    {1, 2, 0.54, 0.03}, {1, 4, 0, 0.03}, {1, 8, 0.31, 0},
                                    {1, 16, 0.31, 0.26}};

struct SweepMethod {
  const char* what;
  const char* faithful;
  const char* shipped;
};
constexpr SweepMethod kSweepMethods[] = {{"TAP", "libra-paper-tap", "libra-tap"},
                                         {"TAP + VRSP", "libra-paper-tap-vrsp", "libra-tap-vrsp"},
                                         {"full", "libra-paper", "libra"}};

double communication(const MethodFigures& figures, double ulysses_ms) {
  return figures.exposed_comm_ms / ulysses_ms;
}
double computation(const MethodFigures& figures, double ulysses_ms) {
  return (figures.straggler.mean_ms - figures.exposed_comm_ms) / ulysses_ms;
}
double together(const MethodFigures& figures, double ulysses_ms) {
  return figures.straggler.mean_ms / ulysses_ms;
}

void add_sweep_rows(std::size_t workload, std::int32_t pool, const Simulation& simulation,
                    std::vector<PaperRow>& rows) {
  const double ulysses_ms = figures_of(simulation, "ulysses")->straggler.mean_ms;
  const SweepPoint* point = nullptr;
  for (const SweepPoint& p : kFigure15) {
    if (p.workload == workload && p.pool == pool) point = &p;
  }
  const auto add = [&](const SweepMethod& m, const char* part, double paper, auto figure) {
    rows.push_back(
        {row_name(kPaperWorkloads[workload], fmt::format("P {}, {}, {}", pool, m.what, part)),
         published(paper), figure(*figures_of(simulation, m.faithful), ulysses_ms),
         figure(*figures_of(simulation, m.shipped), ulysses_ms)});
  };
  for (const SweepMethod& m : kSweepMethods) {
    const bool vrsp = m.faithful == std::string_view("libra-paper-tap-vrsp");
    if (m.faithful == std::string_view("libra-paper")) {
      add(m, "all", 0, together);
      continue;
    }
    add(m, "computation", vrsp && point != nullptr ? point->computation : 0, computation);
    add(m, "communication", vrsp && point != nullptr ? point->communication : 0, communication);
  }
}

}  // namespace

PaperResult paper_pool_sweep(const PaperOptions& options) {
  PaperResult result{"x Ulysses' mean",
                     "as Figure 12; communication of the slowest worker is what is not computation",
                     {}};
  std::vector<const char*> names = {"ulysses"};
  for (const SweepMethod& m : kSweepMethods) {
    names.push_back(m.faithful);
    names.push_back(m.shipped);
  }
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const PaperWorkload& workload = kPaperWorkloads[i];
    const Windows windows = paper_windows(workload, workload.gbs, options.steps, options.seed);
    for (std::int32_t pool = 1; pool <= workload.dp; pool *= 2) {
      Scenario scenario = paper_scenario(workload, options);
      scenario.pool = pool;
      add_sweep_rows(i, pool, simulated(scenario, windows, names, options.threads), result.rows);
    }
  }
  return result;
}

namespace {

/// Figure 16's layout, and what the text says of it: speedups at (B, H).
struct Grid {
  std::int32_t dp;
  std::int32_t pool;
  std::int32_t kv_heads;
  std::int64_t blocks[4];
};
constexpr Grid kGrids[] = {{8, 8, 16, {2048, 4096, 8192, 16384}},
                           {4, 4, 4, {4096, 8192, 16384, 32768}}};

struct GridPoint {
  std::size_t workload;
  std::int64_t block;
  std::int32_t shards;
  double speedup;
};
constexpr GridPoint kFigure16[] = {{0, 8192, 4, 1.89}, {0, 2048, 1, 1.75}, {0, 16384, 1, 0.81},
                                   {1, 4096, 1, 1.62}, {1, 8192, 2, 1.63}, {1, 16384, 4, 1.63},
                                   {1, 32768, 8, 1.58}};

Scenario grid_scenario(std::size_t workload, std::int64_t block, std::int32_t shards,
                       const PaperOptions& options) {
  const Grid& grid = kGrids[workload];
  Scenario scenario = paper_scenario(kPaperWorkloads[workload], options);
  scenario.dp = grid.dp;
  scenario.pool = grid.pool;
  scenario.model.attention.kv_heads = grid.kv_heads;
  scenario.plan.shape = scenario.model.attention;
  scenario.plan.block_tokens = block;
  scenario.plan.head_shards = shards;
  scenario.plan.chunks = largest_legal_chunks(scenario.plan.shape, shards, 4);
  return scenario;
}

}  // namespace

PaperResult paper_tile_grid(const PaperOptions& options) {
  PaperResult result{
      "x Ulysses", "32 query heads, dimension 128; h_kv 16 (256K) and 4 (1M); no overlap", {}};
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const PaperWorkload& workload = kPaperWorkloads[i];
    const Windows windows = paper_windows(workload, workload.gbs, options.steps, options.seed);
    for (const std::int64_t block : kGrids[i].blocks) {
      for (const std::int32_t shards : {1, 2, 4, 8}) {
        PaperRow row{
            row_name(workload, fmt::format("B {}, H {}", format_size(block), shards)), {}, {}, {}};
        for (const GridPoint& p : kFigure16) {
          if (p.workload == i && p.block == block && p.shards == shards) row.paper = p.speedup;
        }
        const Simulation simulation =
            simulated(grid_scenario(i, block, shards, options), windows,
                      {"libra-paper-tap-vrsp", "libra-tap-vrsp"}, options.threads);
        row.faithful = simulation.methods[0].speedup_mean;
        row.shipped = simulation.methods[1].speedup_mean;
        result.rows.push_back(std::move(row));
      }
    }
  }
  return result;
}

}  // namespace libra
