#include "libra/sim/cp_times.h"

#include <gtest/gtest.h>

#include "libra/plan/pool_assignment.h"
#include "libra/plan/random_plans.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::flat_device;
using testing::kMicrosecond;
using testing::kNanosecond;
using testing::sequence;
using testing::tiny_scenario;

// 36 pairs of two heads on two ranks: 36 us. Each gets the other's four rows of K and V (16 bytes a
// row), and sends fp32 gradients (32 bytes a row) back.
TEST(GatheredTimes, AddTheGatherToAnEvenShare) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes times = gathered_times(environment, sequence({8}), {0, 0});
  ASSERT_EQ(times.workers.size(), 2u);
  for (const WorkerTimes& worker : times.workers) {
    EXPECT_DOUBLE_EQ(worker.forward_compute, 36 * kMicrosecond);
    EXPECT_DOUBLE_EQ(worker.forward, 36 * kMicrosecond + 64 * kNanosecond);
    EXPECT_DOUBLE_EQ(worker.backward_compute, 90 * kMicrosecond);
    EXPECT_DOUBLE_EQ(worker.backward, 90 * kMicrosecond + (64 + 128) * kNanosecond);
  }
  EXPECT_EQ(times.work, 72);
  EXPECT_DOUBLE_EQ(times.forward_bytes.nvlink, 2 * 64);
  EXPECT_DOUBLE_EQ(times.backward_bytes.nvlink, 2 * 192);
}

// Per-document shards are 5 pairs of {4} and 39 of {12} for each rank. Per-sequence shards of four
// rows would give rank 0 all of {4}, 10 pairs, and the last rows of {12}, 9 + 10 + 11 + 12.
TEST(GatheredTimes, TakeTheFasterOfTheTwoWaysToShard) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes times = gathered_times(environment, sequence({4, 12}, 16), {0, 0});
  EXPECT_DOUBLE_EQ(times.workers[0].forward_compute, 2 * 44 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[1].forward_compute, 2 * 44 * kMicrosecond);
}

// A one-token document cannot be cut: per document, rank 1 gets all eight; by sequence, four each.
TEST(GatheredTimes, ShardBySequenceWhereDocumentsAreTooShort) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes times = gathered_times(environment, sequence({1, 1, 1, 1, 1, 1, 1, 1}), {0, 0});
  EXPECT_DOUBLE_EQ(times.workers[0].forward_compute, 8 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[1].forward_compute, 8 * kMicrosecond);
}

// Between nodes of one GPU each, the 64 bytes of either rank take the network: 640 ns.
TEST(GatheredTimes, UseTheNetworkBetweenNodes) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpus_per_node = 1;
  const Environment environment(scenario, flat_device());
  const PoolTimes times = gathered_times(environment, sequence({8}), {0, 0});
  EXPECT_DOUBLE_EQ(times.workers[0].forward, 36 * kMicrosecond + 640 * kNanosecond);
  EXPECT_DOUBLE_EQ(times.forward_bytes.inter_node, 2 * 64);
}

// Nodes of two: from GPU 1 on, one rank has a node to itself, the next two share one. Shares of two
// rows, 32 bytes. Into the second node comes the first one's share, once; into the first node both
// of the second's, through its one port: 640 ns. Between the two, each gets what it has not from
// the other: their own two, and one of them the third.
TEST(GatheredTimes, EnterEachNodeOnceHoweverTheGroupLies) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpus_per_node = 2;
  scenario.plan.cp = 3;
  const Environment environment(scenario, flat_device());
  const PoolTimes times = gathered_times(environment, sequence({6}, 6), {1, 0});
  const WorkerTimes& worker = times.workers[0];
  EXPECT_NEAR(worker.forward - worker.forward_compute, 640 * kNanosecond, 1e-15);
  EXPECT_DOUBLE_EQ(times.forward_bytes.inter_node, 3 * 32);
  EXPECT_DOUBLE_EQ(times.forward_bytes.nvlink, 3 * 32);
}

// Every rank gets the shares of all others, whatever lies where.
TEST(CpTimes, MoveTheSameBytesOnAnyNodes) {
  for (const std::int32_t gpus_per_node : {1, 2, 3, 4, 8}) {
    for (const std::int64_t first_gpu : {0, 1, 5}) {
      SCOPED_TRACE(::testing::Message() << gpus_per_node << " a node, from " << first_gpu);
      Scenario scenario = tiny_scenario();
      scenario.cluster.gpus_per_node = gpus_per_node;
      scenario.plan.cp = 5;
      scenario.dp = 1;
      scenario.pool = 1;
      const Environment environment(scenario, flat_device());
      const PackedSequence whole = sequence({20}, 20);
      EXPECT_NEAR(gathered_times(environment, whole, {first_gpu, 0}).forward_bytes.total(),
                  5 * 4 * 4 * 16, 1e-9);
      EXPECT_NEAR(ring_times(environment, whole, {first_gpu, 0}).forward_bytes.total(),
                  5 * 4 * 4 * 16, 1e-9);
    }
  }
}

// Two steps of 18 us; the hop of four rows is hidden under the first.
TEST(RingTimes, HideHopsUnderComputation) {
  const Environment environment(tiny_scenario(), flat_device());
  const PoolTimes times = ring_times(environment, sequence({8}), {0, 0});
  EXPECT_DOUBLE_EQ(times.workers[0].forward_compute, 36 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[0].forward, 36 * kMicrosecond);
  EXPECT_DOUBLE_EQ(times.workers[1].backward, 90 * kMicrosecond);
  EXPECT_EQ(times.work, 72);
}

// At 1 MB/s a hop of 64 bytes takes 64 us, a step computes 18.
TEST(RingTimes, WaitForHopsThatAreLongerThanSteps) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.nvlink_gb_per_s = 0.001;
  const Environment environment(scenario, flat_device());
  const PoolTimes times = ring_times(environment, sequence({8}), {0, 0});
  EXPECT_DOUBLE_EQ(times.workers[0].forward, (64 + 18) * kMicrosecond);
}

TEST(CpTimes, ComputeTheWorkOfTheSequence) {
  const Environment environment(tiny_scenario(), flat_device());
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    const PackedSequence random = testing::random_sequence(rng, 150);
    const std::int64_t work = 2 * sequence_cost(random);
    EXPECT_EQ(gathered_times(environment, random, {0, 0}).work, work);
    EXPECT_EQ(ring_times(environment, random, {0, 0}).work, work);
  }
}

}  // namespace
}  // namespace libra
