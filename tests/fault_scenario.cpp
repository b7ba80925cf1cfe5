#include "tests/fault_scenario.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"

namespace libra::testing {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames = {
    "delayed", "lost",  "duplicated", "repeated", "cut",       "throws",
    "fails",   "stops", "stalls",     "leaves",   "other plan"};

bool exchanges(const PoolPlan& plan) {
  return plan.workers() > 1 && !plan.exchange.q_moves.empty() && !plan.exchange.kv_moves.empty();
}

PoolPlan exchanging_plan(Rng& rng) {
  constexpr std::int64_t kMaxTokens = 60;
  for (;;) {
    PoolPlan plan = random_plan(rng.next(), kMaxTokens);
    if (exchanges(plan)) return plan;
  }
}

}  // namespace

std::string_view fault_name(FaultKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Scenario draw_scenario(std::uint64_t seed) {
  Rng rng(seed, 17);
  Scenario scenario;
  scenario.seed = seed;
  scenario.kind = static_cast<FaultKind>(rng.below(kFaultKinds));
  scenario.plan = exchanging_plan(rng);
  scenario.worker = static_cast<std::int32_t>(between(rng, 0, scenario.plan.workers() - 1));
  scenario.place = rng.uniform();
  scenario.draw = rng.next();
  scenario.deadline = std::chrono::milliseconds(between(rng, 100, 300));
  return scenario;
}

std::string describe(const Scenario& scenario) {
  return fmt::format("seed {}: {}, worker {} of {} at {:.2f}, deadline {} ms", scenario.seed,
                     fault_name(scenario.kind), scenario.worker, scenario.plan.workers(),
                     scenario.place, scenario.deadline.count());
}

PoolPlan other_plan(const Scenario& scenario) {
  PlanOptions options = scenario.plan.options;
  std::vector<PackedSequence> sequences = scenario.plan.sequences;
  switch (scenario.draw % 3) {
    case 0:
      options.tau_ppm += 1;
      break;
    case 1:
      options.gpus_per_node += 1;
      break;
    default:
      // Empty samples change nothing that is computed, and are other lengths all the same.
      sequences.back().sample_tokens.push_back(0);
      break;
  }
  std::vector<std::int64_t> costs;
  costs.reserve(scenario.plan.tiling.blocks.size());
  for (const Block& block : scenario.plan.tiling.blocks) costs.push_back(block.cost);
  return rebuild_plan(options, std::move(sequences), costs, scenario.plan.placement.destination);
}

}  // namespace libra::testing
