// From sample lengths to a balanced pool, as a library user writes it: pack a window, group it with
// VRSP, plan the first pool with and without balancing, compare.
//
//   plan_a_pool data/mix.npy

#include <fmt/format.h>

#include <exception>
#include <vector>

#include "libra/base/units.h"
#include "libra/corpus/corpus.h"
#include "libra/corpus/window.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/traffic.h"

namespace {

// The sequences of the first of the window's pools of eight.
std::vector<libra::PackedSequence> first_pool(const libra::Window& window) {
  std::vector<std::int64_t> costs;
  for (const libra::Packed& packed : window.sequences)
    costs.push_back(libra::sequence_cost(packed.sequence));
  const auto pools = libra::assign_pools(costs, 8, libra::Grouping::kVrsp);
  fmt::print("window of {}: heaviest pool {:.2f} % over the mean\n", costs.size(),
             100 * (libra::imbalance(costs, pools) - 1));
  std::vector<libra::PackedSequence> sequences;
  for (const std::int32_t i : pools.pool(0)) {
    sequences.push_back(window.sequences[static_cast<std::size_t>(i)].sequence);
  }
  return sequences;
}

void report(const libra::PoolPlan& plan) {
  fmt::print("{:>8}: slowest of {} workers {:.2f} x the mean, {} moved in {} of {} tiles\n",
             libra::placer_name(plan.options.placer), plan.workers(),
             plan.placement.max_over_mean(),
             libra::format_bytes(libra::forward_traffic(plan).total()), plan.tiles_moved(),
             plan.tiling.tiles());
}

void run(const char* path) {
  const libra::Corpus corpus = libra::read_corpus(path);
  libra::WindowOptions window_options;
  window_options.sequences = 128;
  window_options.packing.tokens = libra::parse_size("256K");
  window_options.packing.oversize = libra::Oversize::kSplit;
  libra::WindowStream windows(corpus, window_options);
  const std::vector<libra::PackedSequence> sequences = first_pool(windows.next());

  libra::PlanOptions options;  // Qwen3-8B heads, B 4096, H 2, tau 3 %
  options.cp = 8;
  options.placer = libra::PlacerKind::kNone;
  report(libra::make_plan(options, sequences));
  options.placer = libra::PlacerKind::kBalanced;
  report(libra::make_plan(options, sequences));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: plan_a_pool LENGTHS\n");
    return 2;
  }
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "plan_a_pool: {}\n", error.what());
    return 1;
  }
}
