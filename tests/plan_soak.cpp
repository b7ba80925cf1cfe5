// plan_soak [--small N] [--full N] [--seed S]: plans random windows and validates every pool's
// plan.
// Small ones reach every home, placer and head split with up to 32 workers; full-size ones have 16
// sequences of 256K tokens on pools of 64 workers. Exits with 1 at the first violation, whose seed
// it names.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/corpus/corpus.h"
#include "libra/corpus/window.h"
#include "libra/plan/plan_binary.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/validate.h"
#include "tests/matrix_fraction.h"

namespace libra::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Count {
  std::int64_t windows = 0, pools = 0, tiles = 0, moved = 0;
  std::int32_t most_workers = 0;
  double plan_seconds = 0, validate_seconds = 0;

  void print(const char* name) const {
    fmt::print(
        "{}: {} windows, {} pools of up to {} workers, {} tiles, {} moved, planned in {:.1f} "
        "s, validated in {:.1f} s, no violation\n",
        name, windows, pools, most_workers, tiles, moved, plan_seconds, validate_seconds);
  }
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Throws PlanError at a violation.
void plan_pool(const PlanOptions& options, std::vector<PackedSequence> sequences, bool decode,
               Count& count) {
  auto begin = Clock::now();
  const PoolPlan plan = make_plan(options, std::move(sequences));
  count.plan_seconds += seconds_since(begin);
  begin = Clock::now();
  require_valid(plan);
  count.validate_seconds += seconds_since(begin);
  if (decode && !(decode_plan(encode_plan(plan)) == plan)) {
    throw PlanError("the plan's bytes give another plan");
  }
  ++count.pools;
  count.tiles += plan.tiling.tiles();
  count.moved += plan.tiles_moved();
  count.most_workers = std::max(count.most_workers, plan.workers());
}

std::vector<std::int64_t> costs_of(const std::vector<PackedSequence>& window) {
  std::vector<std::int64_t> costs;
  costs.reserve(window.size());
  for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
  return costs;
}

// One to three pools, grouped in any way.
void plan_small_window(std::uint64_t seed, Count& count) {
  constexpr std::int64_t kMaxTokens = 150;
  PlanOptions options = random_problem(seed, 1).options;
  Rng rng(seed, 1);
  const auto pool_size = static_cast<std::int32_t>(between(rng, 1, 4));
  std::vector<PackedSequence> window(at(pool_size * between(rng, 1, 3)));
  for (PackedSequence& sequence : window) sequence = random_sequence(rng, kMaxTokens);
  const auto grouping = static_cast<Grouping>(rng.below(5));
  const PoolAssignment pools = assign_pools(costs_of(window), pool_size, grouping);
  for (std::int32_t pool = 0; pool < pools.pools(); ++pool) {
    std::vector<PackedSequence> sequences;
    options.explicit_runs.clear();
    for (const std::int32_t index : pools.pool(pool)) {
      sequences.push_back(window[at(index)]);
      if (options.home != HomeKind::kExplicit) continue;
      options.explicit_runs.push_back(
          random_runs(rng, window[at(index)].tokens, options.cp / options.tp));
    }
    plan_pool(options, std::move(sequences), seed % 16 == 0, count);
  }
  ++count.windows;
}

// What a training run has: 8 sequences a pool, 8 workers a sequence, Qwen3-8B's heads.
class FullSize {
 public:
  explicit FullSize(std::uint64_t seed)
      : rng_(seed, 2),
        corpus_(read_corpus("synthetic:paper-256k", read_options(seed))),
        windows_(corpus_, window_options(seed)) {}

  void plan_window(Count& count) {
    std::vector<PackedSequence> window;
    for (Packed& packed : windows_.next().sequences) window.push_back(std::move(packed.sequence));
    const PlanOptions options = random_options();
    const PoolAssignment pools = assign_pools(costs_of(window), kPool, Grouping::kVrsp);
    for (std::int32_t pool = 0; pool < pools.pools(); ++pool) {
      std::vector<PackedSequence> sequences;
      for (const std::int32_t index : pools.pool(pool)) sequences.push_back(window[at(index)]);
      plan_pool(options, std::move(sequences), false, count);
    }
    ++count.windows;
  }

 private:
  static constexpr std::int32_t kPool = 8;
  static constexpr std::int32_t kSequences = 16;

  static ReadOptions read_options(std::uint64_t seed) {
    ReadOptions options;
    options.synthetic_documents = 100'000;
    options.synthetic_seed = seed;
    return options;
  }

  static WindowOptions window_options(std::uint64_t seed) {
    WindowOptions options;
    options.sequences = kSequences;
    options.packing.tokens = 262'144;
    options.packing.oversize = Oversize::kSplit;
    options.seed = seed;
    return options;
  }

  PlanOptions random_options() {
    constexpr std::array<std::int64_t, 3> kBlocks = {2048, 4096, 8192};
    PlanOptions options;
    options.cp = 8;
    options.placer = static_cast<PlacerKind>(rng_.below(5));
    options.head_shards = options.placer == PlacerKind::kUlysses ? 8 : 2;
    options.tp = static_cast<std::int32_t>(between(rng_, 1, 2));
    options.home = static_cast<HomeKind>(rng_.below(3));
    options.fetch = static_cast<Fetch>(rng_.below(2));
    options.backward = static_cast<BackwardMode>(rng_.below(2));
    options.block_tokens = kBlocks[rng_.below(kBlocks.size())];
    return options;
  }

  Rng rng_;
  Corpus corpus_;
  WindowStream windows_;
};

// What the windows from `first` on come to; false at a violation.
bool plan_small_windows(std::uint64_t first, std::int64_t number) {
  Count count;
  for (std::int64_t i = 0; i < number; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    try {
      plan_small_window(seed, count);
    } catch (const std::exception& error) {
      fmt::print("small window, seed {}: {}\n", seed, error.what());
      return false;
    }
  }
  count.print("small");
  return true;
}

bool plan_full_windows(std::uint64_t seed, std::int64_t number) {
  FullSize windows(seed);
  Count count;
  while (count.windows < number) {
    try {
      windows.plan_window(count);
    } catch (const std::exception& error) {
      fmt::print("full-size window {}, seed {}: {}\n", count.windows, seed, error.what());
      return false;
    }
  }
  count.print("full-size");
  return true;
}

}  // namespace
}  // namespace libra::testing

int main(int argc, char** argv) {
  CLI::App app("Plans and validates random windows");
  std::int64_t small = 10'000;
  std::int64_t full = 10;
  std::uint64_t seed = std::random_device{}();
  app.add_option("--small", small, "Small windows")->capture_default_str();
  app.add_option("--full", full, "Full-size windows")->capture_default_str();
  app.add_option("--seed", seed, "Of the first window; drawn if not given");
  CLI11_PARSE(app, argc, argv);
  small = libra::testing::fraction_of(small);
  full = libra::testing::fraction_of(full);
  fmt::print("plan_soak --small {} --full {} --seed {}\n", small, full, seed);
  std::fflush(stdout);
  const bool good = libra::testing::plan_small_windows(seed, small) &&
                    libra::testing::plan_full_windows(seed, full);
  return good ? 0 : 1;
}
