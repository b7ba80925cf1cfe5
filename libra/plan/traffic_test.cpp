#include "libra/plan/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "libra/base/index.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::ElementsAre;

// Two workers with 10 tokens each, one sample of 20; 2 heads, one per shard; Ulysses exchanges
// every worker's other shard: 10 query rows each way, and 10 foreign keys each way.
PoolPlan tiny_plan(BackwardMode backward = BackwardMode::kKeep, bool return_lse = false) {
  PlanOptions options;
  options.shape = {2, 2, 3, 5};
  options.storage = DType::kBf16;
  options.cp = 2;
  options.head_shards = 2;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kUlysses;
  options.backward = backward;
  options.return_lse = return_lse;
  return make_plan(options, {{20, {20}}});
}

TEST(Traffic, ForwardSendsQKVOutAndOBack) {
  // To the destination 10 rows of Q (3 x 2 bytes), K (6) and V (10), back 10 rows of O (10): each
  // ordered pair carries one of each.
  const TrafficReport traffic = forward_traffic(tiny_plan());
  EXPECT_THAT(traffic.flows, ElementsAre(Flow{0, 1, 320}, Flow{1, 0, 320}));
  EXPECT_EQ(traffic.total(), 640);
}

TEST(Traffic, TheLseComesBackWhereThePlanReturnsIt) {
  EXPECT_EQ(forward_traffic(tiny_plan(BackwardMode::kKeep, true)).total(), 640 + 2 * 10 * 4);
  EXPECT_EQ(forward_traffic(tiny_plan(BackwardMode::kRefetch)).total(), 640 + 2 * 10 * 4);
}

TEST(Traffic, BackwardWithKeepSendsDOOutAndGradientsBack) {
  // 10 rows of dO (10 bytes) out, dQ (6) back, dK and dV in fp32 ((3 + 5) x 4) back.
  EXPECT_EQ(backward_traffic(tiny_plan()).total(), 2 * 10 * (10 + 6 + 32));
}

TEST(Traffic, BackwardWithRefetchSendsQKVOAndLseAgain) {
  const std::int64_t again = 2 * 10 * (6 + 6 + 10 + 10 + 4);
  const std::int64_t keep = backward_traffic(tiny_plan()).total();
  EXPECT_EQ(backward_traffic(tiny_plan(BackwardMode::kRefetch)).total(), keep + again);
  EXPECT_EQ(backward_traffic(tiny_plan(), BackwardMode::kRefetch).total(), keep + again);
}

TEST(Traffic, GradientsAreAddedWhereTheKeysAreAndWhereTheyWereCopiedFrom) {
  // Of each worker's 10 keys one shard's dK and dV (32 bytes a row) come from the other worker, and
  // the other shard's from its own arena. Read, and read and written where the sum is.
  EXPECT_THAT(addition_bytes(tiny_plan()), ElementsAre(3 * 32 * 20, 3 * 32 * 20));
}

TEST(Traffic, InterNodeCountsPairsOnDifferentNodes) {
  const TrafficReport traffic{4, {{0, 1, 1}, {1, 2, 10}, {2, 0, 100}, {3, 2, 1000}}};
  EXPECT_EQ(traffic.inter_node(2), 110);
  EXPECT_EQ(traffic.inter_node(2, 1), 1 + 100 + 1000);
  EXPECT_EQ(traffic.inter_node(8), 0);
  EXPECT_EQ(traffic.inter_node(1), 1111);
}

TEST(Traffic, ByWorkerIsWhatFlowsSay) {
  const TrafficReport traffic{3, {{0, 1, 1}, {1, 2, 10}, {2, 1, 100}}};
  EXPECT_THAT(traffic.in_by_worker(), ElementsAre(0, 101, 10));
  EXPECT_THAT(traffic.out_by_worker(), ElementsAre(1, 10, 100));
  EXPECT_EQ(traffic.max_in(), 101);
  EXPECT_EQ(traffic.max_out(), 100);
}

TEST(Traffic, OfNothingIsZero) {
  PlanOptions options;
  const TrafficReport traffic = forward_traffic(make_plan(options, {{100, {100}}}));
  EXPECT_TRUE(traffic.flows.empty());
  EXPECT_EQ(traffic.total(), 0);
  EXPECT_EQ(traffic.max_in(), 0);
}

// The rows of every move times the bytes of each of their elements, head by head.
std::int64_t naive_forward_bytes(const PoolPlan& plan) {
  const AttentionShape& shape = plan.options.shape;
  std::int64_t bytes = 0;
  for (const RowMove& move : plan.exchange.q_moves) {
    for (std::int32_t head = 0; head < shape.q_heads / plan.options.head_shards; ++head) {
      bytes += move.rows * element_bytes(plan.options.storage) * (shape.head_dim + shape.value_dim);
      if (plan.options.lse_goes_home())
        bytes += move.rows * element_bytes(accumulation_dtype(plan.options.storage));
    }
  }
  for (const RowMove& move : plan.exchange.kv_moves) {
    for (std::int32_t head = 0; head < plan.heads().kv_shard_heads; ++head)
      bytes += move.rows * element_bytes(plan.options.storage) * (shape.head_dim + shape.value_dim);
  }
  return bytes;
}

TEST(Traffic, BytesSentAreBytesReceivedAndEachPairIsNamedOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    const PoolPlan plan = make_plan(options, sequences);
    EXPECT_EQ(forward_traffic(plan).total(), naive_forward_bytes(plan));
    for (const TrafficReport& traffic : {forward_traffic(plan), backward_traffic(plan)}) {
      const auto in = traffic.in_by_worker();
      const auto out = traffic.out_by_worker();
      EXPECT_EQ(std::accumulate(in.begin(), in.end(), std::int64_t{0}), traffic.total());
      EXPECT_EQ(std::accumulate(out.begin(), out.end(), std::int64_t{0}), traffic.total());
      for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
        EXPECT_NE(traffic.flows[i].from, traffic.flows[i].to);
        if (i == 0) continue;
        EXPECT_LT(std::pair(traffic.flows[i - 1].from, traffic.flows[i - 1].to),
                  std::pair(traffic.flows[i].from, traffic.flows[i].to));
      }
    }
  }
}

}  // namespace
}  // namespace libra
