// How evenly pools are loaded: R - 1 by pool size and method, the P needed for a wanted R, and R -
// 1 against the number of pools at fixed P. One JSON object a line; docs/results.md holds the
// tables made from it.
//
//   grouping_study [--corpus synthetic:paper-256k] [--seq-len 256K] [--windows 200] [--seed 1]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "benchmarks/study_windows.h"
#include "libra/base/units.h"
#include "libra/plan/pool_assignment.h"

namespace libra {
namespace {

using Costs = std::vector<std::int64_t>;

constexpr Grouping kGroupings[] = {Grouping::kProduction, Grouping::kZigzag, Grouping::kZigzagSwap,
                                   Grouping::kVrsp, Grouping::kVrspRefined};

std::vector<Costs> costs_of(const std::vector<std::vector<PackedSequence>>& windows) {
  std::vector<Costs> costs;
  for (const auto& window : windows) {
    Costs& of_window = costs.emplace_back();
    for (const PackedSequence& sequence : window) of_window.push_back(sequence_cost(sequence));
  }
  return costs;
}

struct Spread {
  double mean = 0;
  double standard_error = 0;
  double worst = 0;
};

Spread excess(const std::vector<Costs>& windows, std::int32_t pool_size, Grouping grouping) {
  Spread spread;
  double squares = 0;
  for (const Costs& costs : windows) {
    const double value = imbalance(costs, assign_pools(costs, pool_size, grouping)) - 1;
    spread.mean += value;
    squares += value * value;
    spread.worst = std::max(spread.worst, value);
  }
  const auto n = static_cast<double>(windows.size());
  spread.mean /= n;
  spread.standard_error = std::sqrt(std::max(0.0, squares / n - spread.mean * spread.mean) / n);
  return spread;
}

// Heaviest sequence over mean sequence: below this P no grouping can be perfect.
double heaviest_over_mean(const Costs& costs) {
  double total = 0;
  for (const std::int64_t cost : costs) total += static_cast<double>(cost);
  return static_cast<double>(*std::max_element(costs.begin(), costs.end())) *
         static_cast<double>(costs.size()) / total;
}

void print_by_pool_size(const std::string& corpus, const std::vector<Costs>& windows) {
  for (const std::int32_t pool_size : {1, 2, 4, 8, 16, 32, 64}) {
    for (const Grouping grouping : kGroupings) {
      const Spread s = excess(windows, pool_size, grouping);
      fmt::print(R"({{"table":"r_minus_1","corpus":"{}","p":{},"method":"{}","mean":{:.6f},)"
                 R"("standard_error":{:.6f},"worst":{:.6f}}})"
                 "\n",
                 corpus, pool_size, grouping_name(grouping), s.mean, s.standard_error, s.worst);
    }
  }
}

void print_needed_pool_size(const std::string& corpus, const std::vector<Costs>& windows) {
  double ratio = 0;
  for (const Costs& costs : windows)
    ratio += heaviest_over_mean(costs) / static_cast<double>(windows.size());
  for (const double wanted : {2.5, 1.0, 0.5, 0.1, 0.01, 0.001}) {
    std::int32_t pool_size = 1;
    while (pool_size < 64 && excess(windows, pool_size, Grouping::kVrsp).mean > wanted)
      pool_size *= 2;
    fmt::print(R"({{"table":"needed_p","corpus":"{}","wanted_r_minus_1":{},"p":{},)"
               R"("heaviest_over_mean":{:.3f}}})"
               "\n",
               corpus, wanted, pool_size, ratio);
  }
}

void print_by_pools(const std::string& corpus, const std::vector<Costs>& windows) {
  constexpr std::int32_t kPoolSize = 8;
  for (std::size_t pools = 2; pools * kPoolSize <= windows.front().size(); pools *= 2) {
    std::vector<Costs> cut;
    for (const Costs& costs : windows)
      cut.emplace_back(costs.begin(),
                       costs.begin() + static_cast<std::ptrdiff_t>(pools * kPoolSize));
    for (const Grouping grouping :
         {Grouping::kProduction, Grouping::kVrsp, Grouping::kVrspRefined}) {
      const Spread s = excess(cut, kPoolSize, grouping);
      fmt::print(R"({{"table":"r_by_k","corpus":"{}","p":{},"k":{},"method":"{}","mean":{:.6f},)"
                 R"("standard_error":{:.6f}}})"
                 "\n",
                 corpus, kPoolSize, pools, grouping_name(grouping), s.mean, s.standard_error);
    }
  }
}

}  // namespace
}  // namespace libra

int main(int argc, char** argv) {
  CLI::App app("R - 1 by pool size, method and number of pools");
  std::string corpus = "synthetic:paper-256k";
  std::string tokens = "256K";
  int windows = 200;
  std::uint64_t seed = 1;
  app.add_option("--corpus", corpus, "path or synthetic:NAME")->capture_default_str();
  app.add_option("--seq-len", tokens, "tokens of a packed sequence")->capture_default_str();
  app.add_option("--windows", windows, "windows of 128 sequences")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto costs =
      libra::costs_of(libra::study_windows(corpus, libra::parse_size(tokens), 128, windows, seed));
  libra::print_by_pool_size(corpus, costs);
  libra::print_needed_pool_size(corpus, costs);
  libra::print_by_pools(corpus, costs);
}
