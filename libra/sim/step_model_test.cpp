#include "libra/sim/step_model.h"

#include <gtest/gtest.h>

#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::flat_device;
using testing::sequence;
using testing::tiny_scenario;

// 112 parameters a layer (64 of projections, 48 of the feed-forward part); a MFLOP/s.
Scenario slow_scenario() {
  Scenario scenario = tiny_scenario();
  scenario.cluster.linear_tflops = 1e-6;
  return scenario;
}

// Every worker: 1 s forward and 3 s backward, but worker 2 of GA index 0 with 5 s forward.
std::vector<std::vector<PoolTimes>> attention(std::int32_t pools) {
  std::vector<std::vector<PoolTimes>> times(2);
  for (auto& ga : times) {
    for (std::int32_t pool = 0; pool < pools; ++pool) {
      PoolTimes& one = ga.emplace_back();
      one.workers.assign(static_cast<std::size_t>(4 / pools), {1, 1, 3, 3});
    }
  }
  (pools == 1 ? times[0][0].workers[2] : times[0][1].workers[0]).forward = 5;
  return times;
}

const std::vector<PackedSequence> kSlots(4, sequence({8}));

TEST(LinearSeconds, AreTwoFlopsPerParameterAndToken) {
  EXPECT_DOUBLE_EQ(linear_seconds(slow_scenario(), 8), 2 * 112 * 4 / 1e6);
}

// Two layers of 1 + 3 s attention at each of two GA indices, and 4 s more for the slow worker in
// each layer; without recompute. Linear layers: forward once, backward twice.
TEST(StepTimes, OfOnePoolWaitForItsSlowestWorkerInEveryLayer) {
  Scenario scenario = slow_scenario();
  scenario.recompute = false;
  const Environment environment(scenario, flat_device());
  const StepTimes step = step_times(environment, attention(1), kSlots);
  const double linear = 3 * 2 * 2 * linear_seconds(scenario, 8);
  const double head = 2 * 3 * (2 * 40.0 * 4 / 1e6);
  EXPECT_NEAR(step.step_s, 2 * (2 * 4 + 4) + linear + head + step.sync_s, 1e-9);
  EXPECT_NEAR(step.attention_s, 24, 1e-9);
  EXPECT_EQ(step.microbatch_forward_s.size(), 2u);
}

// Two pools of one replica: the slow one alone decides, in the same way.
TEST(StepTimes, ReplicasMeetAtTheEndOfTheStep) {
  Scenario scenario = slow_scenario();
  scenario.recompute = false;
  scenario.pool = 1;
  const Environment environment(scenario, flat_device());
  const StepTimes step = step_times(environment, attention(2), kSlots);
  EXPECT_NEAR(step.attention_s, 24, 1e-9);
  EXPECT_EQ(step.microbatch_forward_s.size(), 4u);
}

TEST(StepTimes, RecomputeRunsTheForwardPassAgain) {
  Scenario scenario = slow_scenario();
  const Environment with(scenario, flat_device());
  scenario.recompute = false;
  const Environment without(scenario, flat_device());
  const double more = step_times(with, attention(1), kSlots).step_s -
                      step_times(without, attention(1), kSlots).step_s;
  EXPECT_NEAR(more, 2 * (1 + 5) + 4 * linear_seconds(scenario, 8), 1e-9);
}

// Ranks of an EP group wait for each other in every layer, pools or not.
TEST(StepTimes, ExpertsMakeReplicasWaitInEveryLayer) {
  Scenario scenario = slow_scenario();
  scenario.linear = {4, 4, 1, 10};
  scenario.pool = 1;
  scenario.ep = 4;
  const Environment environment(scenario, flat_device());
  EXPECT_EQ(step_times(environment, attention(2), kSlots).microbatch_forward_s.size(), 2u);
}

// 8 tokens on 2 ranks, hidden 4, bf16, one expert each: 32 bytes, of which three quarters leave the
// GPU at 1 GB/s; there and back.
TEST(ExpertExchange, MovesWhatOtherRanksExpertsCompute) {
  Scenario scenario = tiny_scenario();
  scenario.linear = {4, 4, 1, 10};
  scenario.ep = 4;
  EXPECT_DOUBLE_EQ(expert_exchange_seconds(scenario, 8), 2 * 24e-9);
  scenario.ep = 1;
  EXPECT_DOUBLE_EQ(expert_exchange_seconds(scenario, 8), 0);
}

// 2 layers of 112 parameters, embedding and output head of 40 each: 304 x 6 bytes, three quarters
// of them from others.
TEST(SyncSeconds, MoveGradientsAndParametersOnce) {
  EXPECT_DOUBLE_EQ(sync_seconds(tiny_scenario()), 304 * 6 * 0.75 * 1e-9);
}

// One layer and the embedding: the output head is on the other stage.
TEST(SyncSeconds, CountTheEmbeddingOfTheFirstStageOnly) {
  Scenario scenario = tiny_scenario();
  scenario.pp = 2;
  EXPECT_DOUBLE_EQ(sync_seconds(scenario), 152 * 6 * 0.75 * 1e-9);
}

TEST(SyncSeconds, SplitANodesBytesOverItsNetworkPorts) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpus_per_node = 2;
  EXPECT_DOUBLE_EQ(sync_seconds(scenario), 304 * 6 * 0.75 / 2 * 10e-9);
}

TEST(StageLayers, SpreadWhatDoesNotDivide) {
  Scenario scenario = tiny_scenario();
  scenario.model.layers = 7;
  scenario.pp = 3;
  EXPECT_EQ(stage_layers(scenario, 0), 3);
  EXPECT_EQ(stage_layers(scenario, 1), 2);
  EXPECT_EQ(stage_layers(scenario, 2), 2);
}

// State: 304 x (6 + 12 / 4); activations: 16 units, two layers of 2 bytes and one of 34.
TEST(MemoryBytes, AreStateActivationsAndExchange) {
  EXPECT_DOUBLE_EQ(memory_bytes(tiny_scenario(), 8, 1000), 304 * 9 + 16 * (2 * 2 + 34) + 1000);
  Scenario scenario = tiny_scenario();
  scenario.recompute = false;
  EXPECT_DOUBLE_EQ(memory_bytes(scenario, 8, 0), 304 * 9 + 16 * 2 * 34);
}

// Four experts of 48, one a GPU: of 2 x (64 + 16 + 192 + 40) = 624 parameters each GPU holds
// 2 x (64 + 16 + 48 + 40) = 336, and a quarter of the optimizer's state of all 624.
TEST(MemoryBytes, HoldTheOptimizersStateOfTheWholeStageOnce) {
  Scenario scenario = tiny_scenario();
  scenario.linear = {4, 4, 1, 10};
  scenario.ep = 4;
  EXPECT_DOUBLE_EQ(memory_bytes(scenario, 8, 0), 336 * 6 + 624 * 3 + 16 * (2 * 2 + 34));
}

}  // namespace
}  // namespace libra
