#include "libra/sim/simulate.h"

#include <gtest/gtest.h>

#include <atomic>

#include "libra/plan/random_plans.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::flat_device;
using testing::sequence;
using testing::tiny_scenario;

std::vector<const Method*> methods_named(const std::vector<const char*>& names) {
  std::vector<const Method*> methods;
  methods.reserve(names.size());
  for (const char* const name : names) methods.push_back(&find_method(name));
  return methods;
}

std::vector<std::vector<PackedSequence>> windows() {
  const std::vector<PackedSequence> window = {sequence({8}), sequence({1, 1, 1, 1, 1, 1, 1, 1}),
                                              sequence({4, 4}), sequence({2, 2, 2, 2})};
  return {window, {window[2], window[2], window[2], window[2]}};
}

// Ulysses: 126.16 and 70.16 us at the GA indices of the first window, twice 70.16 in the second.
TEST(Simulate, StragglersAreOverTheStepsOfAWindowThenOverWindows) {
  const Environment environment(tiny_scenario(), flat_device());
  const Simulation simulation =
      simulate(environment, windows(), methods_named({"ulysses", "none"}), {});
  ASSERT_EQ(simulation.methods.size(), 2u);
  const MethodFigures& ulysses = simulation.methods[0];
  EXPECT_NEAR(ulysses.straggler.mean_ms, (126.16 + 70.16 + 2 * 70.16) / 4 * 1e-3, 1e-12);
  EXPECT_NEAR(ulysses.straggler.max_ms, (126.16 + 70.16) / 2 * 1e-3, 1e-12);
  EXPECT_DOUBLE_EQ(ulysses.speedup_mean, 1);
  EXPECT_NEAR(ulysses.exposed_comm_ms, 0.16e-3, 1e-12);
  EXPECT_NEAR(simulation.methods[1].speedup_max,
              ulysses.straggler.max_ms / simulation.methods[1].straggler.max_ms, 1e-12);
}

// The sample of 8 tokens is the only outlier of the first window, and waits for three more.
TEST(Simulate, SaysHowMuchWorkWasDone) {
  const Environment environment(tiny_scenario(), flat_device());
  const Simulation simulation =
      simulate(environment, {windows().front()}, methods_named({"wlb", "wlb-repack"}), {});
  const double waits = 36;
  const double all = 36 + 8 + 2 * 10 + 4 * 3;
  EXPECT_DOUBLE_EQ(simulation.methods[0].work_share, (all - waits) / all);
  EXPECT_DOUBLE_EQ(simulation.methods[1].work_share, 1);
}

TEST(Simulate, GivesEqualFiguresOnAnyNumberOfThreads) {
  const Environment environment(tiny_scenario(), flat_device());
  std::vector<double> seconds;
  for (const int threads : {1, 3}) {
    const Simulation simulation =
        simulate(environment, windows(), methods_named({"libra", "wlb"}), {threads, {}});
    for (const MethodFigures& figures : simulation.methods) {
      seconds.insert(seconds.end(), figures.step_seconds.begin(), figures.step_seconds.end());
    }
  }
  ASSERT_EQ(seconds.size(), 8u);
  EXPECT_TRUE(std::equal(seconds.begin(), seconds.begin() + 4, seconds.begin() + 4));
}

// simulate() itself throws if work differs, a method beats the bound or a link is over its rate.
TEST(Simulate, HoldsItsOwnChecksOnRandomWindows) {
  std::vector<const Method*> all;
  all.reserve(known_methods().size());
  for (const Method& method : known_methods()) all.push_back(&method);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    std::vector<PackedSequence> window;
    window.reserve(8);
    for (int i = 0; i < 8; ++i) window.push_back(testing::random_sequence(rng, 100));
    for (PackedSequence& s : window) s.tokens = 150;
    Scenario scenario = tiny_scenario();
    scenario.seq_tokens = 150;
    scenario.gbs = 8;
    scenario.dp = 1 << rng.below(4);
    scenario.pool = largest_pool(scenario.dp, 1 << rng.below(3));
    scenario.pp = 1 + static_cast<std::int32_t>(rng.below(2));
    scenario.recompute = rng.below(2) == 0;
    scenario.cluster.gpus_per_node = 1 + static_cast<std::int32_t>(rng.below(5));
    scenario.cluster.step_variation = rng.below(2) == 0 ? 0 : 0.01;
    const Environment environment(scenario, flat_device());
    const Simulation simulation = simulate(environment, {window, window}, all, {});
    const double bound = simulation.methods.back().straggler.mean_ms;
    for (const MethodFigures& figures : simulation.methods) {
      if (figures.method->step_equivalent) {
        EXPECT_LE(figures.efficiency, 1 + 1e-9);
      }
      EXPECT_GE(figures.straggler.max_ms * (1 + 1e-12), figures.straggler.mean_ms);
      EXPECT_GT(bound, 0);
    }
  }
}

// Sorting pairs sequences of 8 and of 2 tokens: 10 tokens of linear layers in place of 16, as few
// as there can be.
TEST(Simulate, NoOrderOfPaddedSequencesBeatsIdealSteps) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.linear_tflops = 1e-6;
  scenario.cluster.device_speed = 1;
  const Environment environment(scenario, flat_device());
  const std::vector<PackedSequence> window = {sequence({8}), sequence({2}), sequence({8}),
                                              sequence({2})};
  const Simulation simulation =
      simulate(environment, {window}, methods_named({"ulysses", "sorted"}), {});
  EXPECT_LE(simulation.methods[0].efficiency, 1);
  EXPECT_LE(simulation.methods[1].efficiency, 1);
  EXPECT_GT(simulation.methods[1].efficiency, 0.99);
}

// Two stages and three microbatches of uneven work, the heaviest in the middle: less bubble than
// three even ones would have. The bound counts no bubble.
TEST(Simulate, NoUnevenPipelineBeatsIdealSteps) {
  Scenario scenario = tiny_scenario();
  scenario.dp = 1;
  scenario.pool = 1;
  scenario.gbs = 3;
  scenario.pp = 2;
  scenario.plan.cp = 1;
  scenario.linear.vocabulary = 0;
  scenario.cluster.linear_tflops = 1e6;  // attention only
  scenario.cluster.inter_node_gb_per_s = 1e6;
  const Environment environment(scenario, flat_device());
  const std::vector<PackedSequence> window = {sequence({7}), sequence({8}), sequence({7})};
  const Simulation simulation =
      simulate(environment, {window}, methods_named({"none", "ideal"}), {});
  const double pairs = 28 + 36 + 28;
  // A pair of two heads takes 2 us forward, again in the backward pass, and 5 us backward.
  EXPECT_NEAR(simulation.methods[1].step_s, pairs * 9e-6, 1e-9);
  EXPECT_EQ(simulation.methods[1].bubble_share, 0);
  EXPECT_LT(simulation.methods[0].step_s, pairs * 9e-6 * 4 / 3);  // as three even ones take
  EXPECT_LT(simulation.methods[0].efficiency, 1);
}

TEST(Simulate, SkipsAMethodThatTheHeadsDoNotAllow) {
  Scenario scenario = tiny_scenario();
  scenario.plan.cp = 4;
  const Environment environment(scenario, flat_device());
  const Simulation simulation =
      simulate(environment, windows(), methods_named({"ulysses", "none"}), {});
  EXPECT_NE(simulation.methods[0].skipped, "");
  EXPECT_EQ(simulation.methods[1].speedup_mean, 0);  // nothing to compare with
  EXPECT_GT(simulation.methods[1].straggler.mean_ms, 0);
}

TEST(Simulate, SaysHowFarItIs) {
  const Environment environment(tiny_scenario(), flat_device());
  std::atomic<int> calls = 0;
  const auto methods = methods_named({"libra"});
  simulate(environment, windows(), methods, {2, [&calls] { ++calls; }});
  EXPECT_EQ(calls, simulation_tasks(2, methods));
}

}  // namespace
}  // namespace libra
