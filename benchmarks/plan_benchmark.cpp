// How long planning takes on one core: assigning a window's sequences to pools, and planning one
// pool.
//
//   plan_benchmark --benchmark_repetitions=5 --benchmark_format=json
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/study_windows.h"
#include "libra/base/index.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

constexpr std::int32_t kPoolSize = 8;

using Window = std::vector<PackedSequence>;

struct Setting {
  const char* corpus;
  std::int64_t sequence_tokens;
  std::int32_t cp;
  std::int64_t block_tokens;
  std::int32_t kv_heads;
};
constexpr Setting kSettings[] = {{"synthetic:paper-256k", 1 << 18, 8, 4096, 8},
                                 {"synthetic:paper-1m", 1 << 20, 16, 8192, 4}};

Window make_window(const Setting& setting, std::int64_t sequences) {
  return study_windows(setting.corpus, setting.sequence_tokens, sequences, 1, 1).front();
}

std::vector<std::int64_t> costs_of(const Window& window) {
  std::vector<std::int64_t> costs;
  costs.reserve(window.size());
  for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
  return costs;
}

void assign_to_pools(benchmark::State& state) {
  const std::vector<std::int64_t> costs = costs_of(make_window(kSettings[0], state.range(0)));
  const auto grouping = static_cast<Grouping>(state.range(1));
  state.SetLabel(std::string(grouping_name(grouping)));
  for (auto _ : state) benchmark::DoNotOptimize(assign_pools(costs, kPoolSize, grouping));
}
BENCHMARK(assign_to_pools)
    ->ArgNames({"sequences", "grouping"})
    ->ArgsProduct({{128, 256, 512, 1024}, {static_cast<int>(Grouping::kVrsp)}})
    ->Args({128, static_cast<int>(Grouping::kZigzagSwap)})
    ->Args({128, static_cast<int>(Grouping::kVrspRefined)});

// What a step needs before its pools are planned: the work of every sequence, and VRSP.
void estimate_and_assign(benchmark::State& state) {
  const Window window = make_window(kSettings[state.range(1)], state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(assign_pools(costs_of(window), kPoolSize, Grouping::kVrsp));
}
BENCHMARK(estimate_and_assign)
    ->ArgNames({"sequences", "setting"})
    ->ArgsProduct({{128, 256, 512}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

std::vector<Window> vrsp_pools(const Setting& setting) {
  const Window window = make_window(setting, 128);
  const PoolAssignment assignment = assign_pools(costs_of(window), kPoolSize, Grouping::kVrsp);
  std::vector<Window> pools;
  for (std::int32_t k = 0; k < assignment.pools(); ++k) {
    Window& pool = pools.emplace_back();
    for (const std::int32_t sequence : assignment.pool(k)) pool.push_back(window[at(sequence)]);
  }
  return pools;
}

PlanOptions options_of(const Setting& setting, PlacerKind placer, HomeKind home) {
  PlanOptions options;
  options.shape = {32, setting.kv_heads, 128, 128};
  options.cp = setting.cp;
  options.block_tokens = setting.block_tokens;
  options.placer = placer;
  options.home = home;
  options.fetch = default_fetch(placer);
  options.head_shards = placer == PlacerKind::kUlysses ? setting.cp : 2;
  options.chunks = largest_legal_chunks(options.shape, options.head_shards, 4);
  return options;
}

struct PoolCase {
  std::vector<Window> pools;
  PlanOptions options;
};

PoolCase pool_case(benchmark::State& state) {
  const auto placer = static_cast<PlacerKind>(state.range(1));
  const auto home = static_cast<HomeKind>(state.range(2));
  const Setting& setting = kSettings[state.range(0)];
  state.SetLabel(std::string(setting.corpus) + " W " + std::to_string(setting.cp * kPoolSize) +
                 " " + std::string(placer_name(placer)) + " " + std::string(home_name(home)));
  return {vrsp_pools(setting), options_of(setting, placer, home)};
}

// The whole plan of one pool, the mean over the pools of a window.
void plan_pool(benchmark::State& state) {
  const PoolCase given = pool_case(state);
  std::size_t pool = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_plan(given.options, given.pools[pool]));
    pool = (pool + 1) % given.pools.size();
  }
}

void traffic_of_plan(benchmark::State& state) {
  const PoolCase given = pool_case(state);
  const PoolPlan plan = make_plan(given.options, given.pools.front());
  for (auto _ : state) benchmark::DoNotOptimize(forward_traffic(plan).total());
}

void validate_plan(benchmark::State& state) {
  const PoolCase given = pool_case(state);
  const PoolPlan plan = make_plan(given.options, given.pools.front());
  for (auto _ : state) benchmark::DoNotOptimize(validate(plan));
}

void encode_and_decode(benchmark::State& state) {
  const PoolCase given = pool_case(state);
  const PoolPlan plan = make_plan(given.options, given.pools.front());
  const std::size_t bytes = encode_plan(plan).size();
  for (auto _ : state) benchmark::DoNotOptimize(decode_plan(encode_plan(plan)));
  state.counters["plan_bytes"] = static_cast<double>(bytes);
}

constexpr auto kBalanced = static_cast<int>(PlacerKind::kBalanced);
constexpr auto kContiguous = static_cast<int>(HomeKind::kContiguous);

BENCHMARK(plan_pool)
    ->ArgNames({"setting", "placer", "home"})
    ->ArgsProduct({{0, 1},
                   {static_cast<int>(PlacerKind::kNone), static_cast<int>(PlacerKind::kUlysses),
                    static_cast<int>(PlacerKind::kPaper), static_cast<int>(PlacerKind::kReserve),
                    kBalanced},
                   {kContiguous}})
    ->ArgsProduct({{0, 1},
                   {kBalanced},
                   {static_cast<int>(HomeKind::kZigzagRow),
                    static_cast<int>(HomeKind::kZigzagDocument)}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(traffic_of_plan)
    ->ArgsProduct({{0, 1}, {kBalanced}, {kContiguous}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(validate_plan)
    ->ArgsProduct({{0, 1}, {kBalanced}, {kContiguous}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(encode_and_decode)
    ->ArgsProduct({{0, 1}, {kBalanced}, {kContiguous}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace libra

BENCHMARK_MAIN();
