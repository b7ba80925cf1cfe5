#include "libra/sim/plan_times.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "libra/base/index.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::flat_device;
using testing::kMicrosecond;
using testing::kNanosecond;
using testing::sequence;
using testing::tiny_scenario;

// Sequence {8} on two ranks with one head shard; rank 1's second block (rows 6 and 7, 15 pairs)
// goes to worker 2, of a replica without samples.
PoolPlan one_moved_tile(std::int32_t chunks, bool local_first) {
  PlanOptions options = tiny_scenario().plan;
  options.chunks = chunks;
  options.local_first = local_first;
  return rebuild_plan(options, {sequence({8}), sequence({})}, {6, 14, 22, 30}, {0, 0, 1, 2});
}

// Worker 1 computes 11 pairs x 2 heads and fetches rows 0 to 3 of K and V; worker 2 computes 15 x
// 2, with two rows of Q and all eight of K and V (16 bytes each; Q and O 8 bytes).
TEST(PlanTimes, AreDispatchComputationAndReturnInTurn) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes times = plan_times(environment, one_moved_tile(1, true), {0, 0, false});
  EXPECT_DOUBLE_EQ(times.workers[0].forward_compute, 20 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[1].forward_compute, 22 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[2].forward_compute, 30 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[3].forward, 0);
  // Into worker 2: 16 bytes of Q, 128 of K and V; out again: 16 bytes of O.
  EXPECT_DOUBLE_EQ(times.workers[2].forward, 30 * kMicrosecond + (144 + 16) * kNanosecond);
  // Backward: dO in; dQ and fp32 dK, dV (32 bytes a row) out.
  EXPECT_DOUBLE_EQ(times.workers[2].backward_compute, 75 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[2].backward, 75 * kMicrosecond + (16 + 16 + 256) * kNanosecond);
  EXPECT_EQ(times.work, 72);
}

// On three multiprocessors with a query a block, worker 2's two queries of two heads are four
// blocks, 7 or 8 pairs at 3 us each: two turns of the shorter ones, for 30 us of work.
TEST(PlanTimes, BlocksThatDoNotDivideEvenlyTakeTurns) {
  DeviceProfileData data = flat_device().data();
  data.multiprocessors = 3;
  data.block_tokens = 1;
  const Scenario scenario = tiny_scenario();
  const Environment environment(scenario, DeviceProfile(data).for_shape(scenario.plan.shape));
  const PoolTimes times = plan_times(environment, one_moved_tile(1, true), {0, 0, false});
  EXPECT_DOUBLE_EQ(times.workers[2].forward_compute, 42 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[2].backward_compute, 75 * kMicrosecond);
}

// Two chunks: half of the dispatch and half of the return are exposed, nothing else.
TEST(PlanTimes, OverlapExposesFirstDispatchAndLastReturn) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes times = plan_times(environment, one_moved_tile(2, true), {0, 0, true});
  EXPECT_DOUBLE_EQ(times.workers[2].forward, 30 * kMicrosecond + (72 + 8) * kNanosecond);
  // Worker 0 has only local work, which hides both of its dispatches.
  EXPECT_DOUBLE_EQ(times.workers[0].forward, 20 * kMicrosecond);
}

// Then the first dispatch is exposed and the second hidden: the same sum.
TEST(PlanTimes, LocalWorkIsInEveryChunkInFaithfulMode) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes first = plan_times(environment, one_moved_tile(2, true), {0, 0, true});
  const PoolTimes chunked = plan_times(environment, one_moved_tile(2, false), {0, 0, true});
  // On this device calls of fewer heads are as fast.
  EXPECT_DOUBLE_EQ(first.workers[0].forward_compute, chunked.workers[0].forward_compute);
  EXPECT_DOUBLE_EQ(chunked.workers[0].forward, 20 * kMicrosecond + 72 * kNanosecond);
}

// Sequence {8} on four ranks of two nodes, nothing moved. Workers 2 and 3 need rows 0 to 3: worker
// 2 brings in rows 2 and 3, worker 3 rows 0 and 1. A row of K and V is 16 bytes, 10 ns a byte
// between nodes.
PoolPlan relayed_plan(std::int32_t chunks) {
  PlanOptions options = tiny_scenario().plan;
  options.cp = 4;
  options.chunks = chunks;
  options.gpus_per_node = 2;
  options.node_fetch = true;
  return rebuild_plan(options, {sequence({8})}, {6, 14, 22, 30}, {0, 1, 2, 3});
}

Environment two_node_environment() {
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpus_per_node = 2;
  return {scenario, flat_device()};
}

TEST(PlanTimes, ARelayPassesOnWhatHasCome) {
  const Environment environment = two_node_environment();
  const PoolTimes times = plan_times(environment, relayed_plan(1), {0, 0, false});
  // 32 bytes cross to each of workers 2 and 3, then go on to the other.
  EXPECT_DOUBLE_EQ(times.workers[3].forward, 30 * kMicrosecond + (320 + 32) * kNanosecond);
  EXPECT_DOUBLE_EQ(times.workers[2].forward, 22 * kMicrosecond + (320 + 32) * kNanosecond);
  EXPECT_DOUBLE_EQ(times.forward_bytes.inter_node, 64);
  EXPECT_DOUBLE_EQ(times.forward_bytes.nvlink, 32 + 32 + 64);
  // Gradients in fp32, twice the bytes: to the relay, then their sum home.
  EXPECT_DOUBLE_EQ(times.workers[3].backward, 75 * kMicrosecond + (64 + 640) * kNanosecond);
  EXPECT_DOUBLE_EQ(times.backward_bytes.inter_node, 128);
}

TEST(PlanTimes, OnlyTheFirstKeysOfARelayAndTheLastSumsAreExposed) {
  const Environment environment = two_node_environment();
  const PoolTimes times = plan_times(environment, relayed_plan(2), {0, 0, true});
  EXPECT_DOUBLE_EQ(times.workers[3].forward, 30 * kMicrosecond + (160 + 16) * kNanosecond);
  EXPECT_DOUBLE_EQ(times.workers[3].backward, 75 * kMicrosecond + (32 + 320) * kNanosecond);
}

TEST(PlanTimes, WhatOthersComputedIsAddedAtTheEnd) {
  DeviceProfileData data = flat_device().data();
  data.add_mb_per_s = 1'000'000;  // 1 ns a byte at the cluster's speed
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpus_per_node = 2;
  const DeviceProfile device = DeviceProfile(data).for_shape(scenario.plan.shape);
  const PoolPlan plan = relayed_plan(1);
  const std::vector<std::int64_t> bytes = addition_bytes(plan);
  const PoolTimes free = plan_times(two_node_environment(), plan, {0, 0, true});
  const PoolTimes times = plan_times({scenario, device}, plan, {0, 0, true});
  // Worker 3 relays two rows, 32 bytes each in fp32: read, and read and written where they go. It
  // brings in two rows for itself, and holds two.
  EXPECT_EQ(bytes[3], 3 * 32 * (2 + 2));
  for (std::size_t worker = 0; worker < 4; ++worker) {
    EXPECT_NEAR(times.workers[worker].backward - free.workers[worker].backward,
                static_cast<double>(bytes[worker]) * kNanosecond, 1e-15);
    EXPECT_DOUBLE_EQ(times.workers[worker].forward, free.workers[worker].forward);
  }
}

TEST(PlanTimes, SlowGpusTakeLonger) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpu_variation = 0.1;
  const Environment environment(scenario, flat_device());
  const PoolTimes times = plan_times(environment, one_moved_tile(1, true), {4, 7, false});
  EXPECT_DOUBLE_EQ(times.workers[2].forward_compute,
                   30 * kMicrosecond * environment.slowness(6, 7));
}

TEST(PlanTimes, MatchThePlansOwnLoadsWorkAndBytes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::PoolProblem problem = testing::random_problem(seed);
    Scenario scenario = tiny_scenario();
    scenario.model.attention = problem.options.shape;
    scenario.plan.shape = problem.options.shape;
    scenario.plan.head_shards = 1;
    scenario.plan.chunks = 1;
    const Environment environment(scenario, flat_device());
    const PoolPlan plan = make_plan(problem.options, problem.sequences);
    const PoolTimes times = plan_times(environment, plan, {0, 0, true});
    const PoolTimes in_turn = plan_times(environment, plan, {0, 0, false});
    std::int64_t work = 0;
    for (const std::int64_t load : plan.placement.load) work += load;
    EXPECT_EQ(times.work, work);
    EXPECT_DOUBLE_EQ(times.forward_bytes.total(),
                     static_cast<double>(forward_traffic(plan).total()));
    EXPECT_DOUBLE_EQ(times.backward_bytes.total(),
                     static_cast<double>(backward_traffic(plan).total()));
    for (std::size_t worker = 0; worker < times.workers.size(); ++worker) {
      // Later chunks, and what relays pass on, wait for other workers.
      if (plan.options.chunks == 1 && !has_relays(plan.exchange)) {
        EXPECT_LE(times.workers[worker].forward, in_turn.workers[worker].forward * (1 + 1e-12));
      }
      EXPECT_GE(times.workers[worker].forward, times.workers[worker].forward_compute * (1 - 1e-12));
    }
  }
}

}  // namespace
}  // namespace libra
