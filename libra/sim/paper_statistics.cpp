// Length statistics and planning: Figures 2, 4 and 8, sections 4.2 and 5.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "libra/corpus/corpus.h"
#include "libra/corpus/statistics.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_plan.h"
#include "libra/sim/evenness.h"
#include "libra/sim/methods.h"
#include "libra/sim/paper_workload.h"

namespace libra {
namespace {

using Windows = std::vector<std::vector<PackedSequence>>;

// Figures 4 and 8 look at windows of 128 at both lengths.
constexpr std::int64_t kWindow = 128;

template <typename Function>
double median_us(int repetitions, Function&& function) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

constexpr int kRepetitions = 21;

}  // namespace

PaperResult paper_lengths(const PaperOptions& options) {
  PaperResult result{"tokens", "", {}};
  for (const PaperWorkload& workload : kPaperWorkloads) {
    ReadOptions read;
    read.synthetic_seed = options.seed;
    const CorpusStatistics s = corpus_statistics(read_corpus(workload.corpus, read).lengths);
    const auto add = [&](const char* what, std::optional<double> paper, std::int64_t ours) {
      result.rows.push_back({row_name(workload, what), paper, static_cast<double>(ours), {}});
    };
    add("median", 644, s.median);
    add("90th percentile", {}, s.p90);
    add("99th percentile", {}, s.p99);
    add("99.9th percentile", {}, s.p999);
    add("longest", {}, s.max);
  }
  return result;
}

PaperResult paper_production_pools(const PaperOptions& options) {
  struct Published {
    std::int32_t pool;
    double r[2];
  };
  constexpr Published kPublished[] = {{8, {1.08, 0.90}}, {64, {0.09, 0.08}}};
  PaperResult result{"R - 1", "windows of 128 sequences at both lengths", {}};
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const Windows windows = paper_windows(kPaperWorkloads[i], kWindow, options.steps, options.seed);
    for (const std::int32_t pool : {1, 2, 4, 8, 16, 32, 64}) {
      PaperRow row{row_name(kPaperWorkloads[i], fmt::format("P {}", pool)), {}, {}, {}};
      for (const Published& published : kPublished) {
        if (published.pool == pool) row.paper = published.r[i];
      }
      row.faithful = mean_r_minus_1(windows, pool, Grouping::kProduction);
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

PaperResult paper_groupings(const PaperOptions& options) {
  constexpr std::int32_t kPool = 8;
  PaperResult result{"R - 1", "windows of 128; the paper says that VRSP is below 0.007", {}};
  for (const PaperWorkload& workload : kPaperWorkloads) {
    const Windows windows = paper_windows(workload, kWindow, options.steps, options.seed);
    for (const Grouping grouping :
         {Grouping::kProduction, Grouping::kZigzag, Grouping::kZigzagSwap, Grouping::kVrsp}) {
      PaperRow row{row_name(workload, std::string(grouping_name(grouping))), {}, {}, {}};
      if (grouping == Grouping::kProduction) row.paper = workload.cp == 8 ? 1.08 : 0.90;
      if (grouping == Grouping::kVrsp) row.paper = 0.007;
      row.faithful = mean_r_minus_1(windows, kPool, grouping);
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

PaperResult paper_vrsp_time(const PaperOptions& options) {
  constexpr std::int32_t kPool = 8;
  PaperResult result{"us", "one core, P 8; measured here and now", {}};
  for (const auto& [sequences, paper] : {std::pair(128, 48.0), std::pair(256, 106.0)}) {
    const Windows windows = paper_windows(kPaperWorkloads[0], sequences, 1, options.seed);
    const std::vector<std::int64_t> costs = costs_of(windows.front());
    const double us = median_us(kRepetitions, [&] { assign_pools(costs, kPool, Grouping::kVrsp); });
    result.rows.push_back({fmt::format("VRSP of {} sequences", sequences), paper, us, {}});
  }
  return result;
}

PaperResult paper_planning_time(const PaperOptions& options) {
  constexpr double kPublished[2][2] = {{2200, 2400}, {600, 10700}};
  PaperResult result{
      "us", "one core; P 8, H 2, B 4096 (256K) and 8192 (1M); measured here and now", {}};
  for (std::size_t i = 0; i < std::size(kPaperWorkloads); ++i) {
    const PaperWorkload& workload = kPaperWorkloads[i];
    const Windows windows = paper_windows(workload, workload.gbs, 1, options.seed);
    const auto grouping = [&] { assign_pools(costs_of(windows.front()), 8, Grouping::kVrsp); };
    result.rows.push_back({row_name(workload, "workloads and VRSP, a step"),
                           kPublished[i][0],
                           median_us(kRepetitions, grouping),
                           {}});
    const Scenario scenario = paper_scenario(workload, options);
    const std::vector<PackedSequence> pool(windows.front().begin(), windows.front().begin() + 8);
    const auto planning = [&](const char* method) {
      const PlanOptions plan = plan_options(scenario, find_method(method));
      return median_us(kRepetitions, [&] { make_plan(plan, pool); });
    };
    result.rows.push_back({row_name(workload, "tiles, placement and exchange, a microbatch"),
                           kPublished[i][1], planning("libra-paper"), planning("libra")});
  }
  return result;
}

}  // namespace libra
