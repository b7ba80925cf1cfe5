#include "libra/plan/cluster_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "libra/base/index.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

ComputeCost h200_cost() {
  return compute_cost(std::make_shared<const DeviceProfile>(
      find_device_profile("h200").for_shape(AttentionShape{32, 8, 128, 128})));
}

// Additions that are not free.
ComputeCost made_up_cost() {
  return {
      [](TokenRange queries, std::int32_t heads) { return flops_cost(queries, heads) * 10'000; },
      [](std::int64_t bytes) { return bytes * 10; }};
}

// Of tiles and additions together.
double heaviest_over_mean(const PoolPlan& plan, const ComputeCost& cost) {
  const std::vector<std::int64_t> bytes = addition_bytes(plan);
  double heaviest = 0, total = 0;
  for (std::size_t worker = 0; worker < bytes.size(); ++worker) {
    const auto load =
        static_cast<double>(plan.placement.load[worker] + cost.additions(bytes[worker]));
    heaviest = std::max(heaviest, load);
    total += load;
  }
  return heaviest * plan.workers() / total;
}

// A second for each tile; additions take `ps_per_byte`.
ComputeCost a_second_a_tile(std::int64_t ps_per_byte) {
  return {[](TokenRange, std::int32_t) { return std::int64_t{1'000'000'000'000}; },
          [ps_per_byte](std::int64_t bytes) { return bytes * ps_per_byte; }};
}

std::vector<PackedSequence> tiny_pool() {
  std::vector<PackedSequence> sequences;
  Rng rng(1);
  for (int replica = 0; replica < 8; ++replica) {
    PackedSequence sequence{1 << 16, {}};
    for (std::int64_t left = 1 << 16; left > 0;) {
      const std::int64_t tokens = std::min(left, testing::between(rng, 1, 64));
      sequence.sample_tokens.push_back(tokens);
      left -= tokens;
    }
    sequences.push_back(sequence);
  }
  // Half of this one is padding: the others have more than the cap.
  sequences[3].sample_tokens.resize(sequences[3].sample_tokens.size() / 2);
  return sequences;
}

TEST(ClusterPlan, KeepsTinySamplesInTheirNode) {
  PlanOptions options;
  options.cp = 8;
  EXPECT_GT(make_plan(options, tiny_pool(), h200_cost().piece).tiles_moved(), 0);
  const Cluster cluster = load_cluster("hgx-h200");
  EXPECT_EQ(make_plan_for(cluster, options, tiny_pool(), h200_cost()).tiles_moved(), 0);
}

TEST(ClusterPlan, MovesWhatIsWorthIt) {
  PlanOptions options;
  options.cp = 8;
  std::vector<PackedSequence> sequences = tiny_pool();
  sequences[0] = {1 << 18, {1 << 18}};
  const PoolPlan plan =
      make_plan_for(load_cluster("supernode-64"), options, sequences, h200_cost());
  EXPECT_GT(plan.tiles_moved(), 0);
  EXPECT_LE(heaviest_over_mean(plan, h200_cost()), 1.03);
}

TEST(ClusterPlan, CountsWhatHomesAddUp) {
  PlanOptions options;
  options.cp = 8;
  options.tau_ppm = 5000;
  std::vector<PackedSequence> sequences = tiny_pool();
  sequences[0] = {1 << 18, {1 << 18}};
  Cluster cluster = load_cluster("supernode-64");
  cluster.nvlink_gb_per_s = 1e6;  // only computation counts
  ComputeCost cost = h200_cost();
  const PoolPlan counted = make_plan_for(cluster, options, sequences, cost);
  cost.additions = [](std::int64_t) { return std::int64_t{0}; };
  const PoolPlan not_counted = make_plan_for(cluster, options, sequences, cost);
  EXPECT_GT(heaviest_over_mean(not_counted, h200_cost()), 1.04);
  EXPECT_LE(heaviest_over_mean(counted, h200_cost()), 1.015);
}

TEST(ClusterPlan, IsNeverPredictedSlowerThanMovingNothing) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.placer = PlacerKind::kBalanced;
    Rng rng(seed, 8);
    Cluster cluster = load_cluster("hgx-h200");
    cluster.gpus_per_node = static_cast<std::int32_t>(testing::between(rng, 1, 8));
    // From links for which nothing is worth it to links for which all is.
    cluster.nvlink_gb_per_s = static_cast<double>(testing::between(rng, 1, 1000)) / 10;
    cluster.inter_node_gb_per_s = cluster.nvlink_gb_per_s / 4;
    const ComputeCost cost = made_up_cost();
    const PoolPlan plan = make_plan_for(cluster, options, sequences, cost);
    ASSERT_TRUE(validate(plan).empty());
    PlanOptions home = options;
    home.placer = PlacerKind::kNone;
    home.gpus_per_node = cluster.gpus_per_node;
    EXPECT_LE(predicted_seconds(plan, cluster, cost),
              predicted_seconds(make_plan(home, sequences, cost.piece), cluster, cost));
    moved += plan.tiles_moved() > 0 ? 1 : 0;
  }
  EXPECT_GT(moved, 30);
  EXPECT_LT(moved, 270);
}

// 1e6 bytes a second inside a node; nothing else costs anything.
Cluster slow_links() {
  Cluster cluster = load_cluster("hgx-h200");
  cluster.overlap_loss = 0;
  cluster.nvlink_latency_us = 0;
  cluster.nvlink_gb_per_s = 1e-3;
  return cluster;
}

// A sample on two workers, a second of work each, a chunk for each head; nothing moves.
PoolPlan two_worker_plan(std::int32_t heads) {
  PlanOptions options;
  options.shape = {heads, heads, 4, 4};
  options.storage = DType::kFp64;
  options.cp = 2;
  options.head_shards = 1;
  options.chunks = heads;
  options.block_tokens = 1000;
  options.placer = PlacerKind::kNone;
  return make_plan(options, {{2000, {2000}}}, a_second_a_tile(0).piece);
}

TEST(ClusterPlan, PredictsWhatChunksHide) {
  Cluster cluster = slow_links();
  const PoolPlan plan = two_worker_plan(2);
  // 1000 rows of K and V, 128 bytes each, in each pass; half of them beside the other chunk.
  EXPECT_DOUBLE_EQ(predicted_seconds(plan, cluster, a_second_a_tile(0)), 1 + 2 * 0.064);
  cluster.overlap_loss = 0.5;
  EXPECT_DOUBLE_EQ(predicted_seconds(plan, cluster, a_second_a_tile(0)), 1 + 2 * 0.064 + 2 * 0.032);
}

TEST(ClusterPlan, TakesMoreHeadShardsWhereKeysAreMostOfTheBytes) {
  PlanOptions options;
  options.cp = 8;
  std::vector<PackedSequence> sequences = tiny_pool();
  sequences[0] = {1 << 18, {1 << 18}};
  Cluster cluster = load_cluster("hgx-h200");
  cluster.inter_node_gb_per_s = 10;
  const PoolPlan plan = make_plan_for(cluster, options, sequences, h200_cost());
  EXPECT_GT(plan.options.head_shards, options.head_shards);
  EXPECT_LE(plan.options.head_shards, options.shape.kv_heads);
  cluster.nvlink_gb_per_s = cluster.inter_node_gb_per_s = 1e6;
  const PoolPlan free = make_plan_for(cluster, options, sequences, h200_cost());
  EXPECT_EQ(free.options.head_shards, options.head_shards);
}

TEST(ClusterPlan, IsInOneNodeNeverPredictedSlowerThanThePlanForNoCluster) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.placer = PlacerKind::kBalanced;
    Cluster cluster = load_cluster("supernode-64");
    cluster.nvlink_gb_per_s = static_cast<double>(1 + seed % 100);
    options.gpus_per_node = cluster.gpus_per_node;
    const ComputeCost cost = made_up_cost();
    const double given =
        predicted_seconds(make_plan(options, sequences, cost.piece), cluster, cost);
    const double chosen =
        predicted_seconds(make_plan_for(cluster, options, sequences, cost), cluster, cost);
    ASSERT_LE(chosen, given);
    faster += chosen < given ? 1 : 0;
  }
  EXPECT_GT(faster, 30);
}

// A document that one replica of eight has: its keys go to both nodes, and to several workers each.
PoolPlan two_node_plan(PlanOptions options, const Cluster& cluster) {
  options.shape = {32, 8, 128, 128};
  options.cp = 2;
  std::vector<PackedSequence> sequences(7, {1 << 17, std::vector<std::int64_t>(32, 4096)});
  sequences.insert(sequences.begin(), {1 << 17, {1 << 17}});
  return make_plan_for(cluster, options, sequences, h200_cost());
}

TEST(ClusterPlan, FetchesOnceForANodeUnlessThatIsSlower) {
  Cluster cluster = load_cluster("hgx-h200");
  EXPECT_TRUE(has_relays(two_node_plan({}, cluster).exchange));
  cluster.nvlink_gb_per_s = cluster.inter_node_gb_per_s / 50;
  EXPECT_FALSE(has_relays(two_node_plan({}, cluster).exchange));
  cluster.gpus_per_node = 16;
  EXPECT_FALSE(two_node_plan({}, cluster).options.node_fetch);
}

TEST(ClusterPlan, EndsWhateverTau) {
  Cluster cluster = load_cluster("hgx-h200");
  cluster.inter_node_gb_per_s = 1;
  PlanOptions options;
  for (const std::int32_t tau : {0, 1, 100, kMaxTauPpm}) {
    options.tau_ppm = tau;
    EXPECT_GE(two_node_plan(options, cluster).options.tau_ppm, tau);
  }
}

TEST(ClusterPlan, LeavesBaselinesAndWhatIsAskedForAsTheyAre) {
  const Cluster cluster = load_cluster("hgx-h200");
  PlanOptions options;
  options.placer = PlacerKind::kPaper;
  const PoolPlan paper = two_node_plan(options, cluster);
  EXPECT_FALSE(paper.options.node_fetch);
  EXPECT_EQ(paper.options.head_shards, options.head_shards);
  EXPECT_EQ(paper.options.tau_ppm, options.tau_ppm);
  options.node_fetch = true;
  EXPECT_TRUE(two_node_plan(options, cluster).options.node_fetch);
}

TEST(ClusterPlan, PredictsTheBusiestPortOrTheHeaviestLoad) {
  Cluster cluster = slow_links();
  const PoolPlan plan = two_worker_plan(1);
  // 1000 rows of K and V, 64 bytes each, go to worker 1; their gradients, as large, come back.
  EXPECT_DOUBLE_EQ(predicted_seconds(plan, cluster, a_second_a_tile(0)), 1 + 2 * 0.064)
      << "one chunk hides nothing";
  cluster.nvlink_gb_per_s = 1e-5;
  EXPECT_DOUBLE_EQ(predicted_seconds(plan, cluster, a_second_a_tile(0)), 1 + 2 * 6.4);
  cluster.nvlink_latency_us = 1e6;  // two phases of two passes wait
  EXPECT_DOUBLE_EQ(predicted_seconds(plan, cluster, a_second_a_tile(0)), 1 + 2 * 6.4 + 4);
  cluster.nvlink_latency_us = 0;
  cluster.device_speed = 0.1;
  EXPECT_DOUBLE_EQ(predicted_seconds(plan, cluster, a_second_a_tile(0)), 10 + 2 * 6.4);
}

}  // namespace
}  // namespace libra
