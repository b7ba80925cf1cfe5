#include "libra/plan/relays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "libra/base/index.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"

namespace libra {
namespace {

using ::testing::ElementsAre;

// Four workers on two nodes, 10 tokens each of a sample of 40; nothing moves. Workers 2 and 3 need
// keys [0, 30) and [0, 40).
PlanOptions two_nodes() {
  PlanOptions options;
  options.shape = {2, 2, 4, 4};
  options.storage = DType::kBf16;
  options.cp = 4;
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kNone;
  options.gpus_per_node = 2;
  options.node_fetch = true;
  return options;
}

TEST(Relays, BringInWhatTheirNodeLacksAndPassItOn) {
  const PoolPlan plan = make_plan(two_nodes(), {{40, {40}}});
  // Each brings in half. What worker 2 holds comes straight from it.
  EXPECT_THAT(plan.exchange.kv_moves,
              ElementsAre(RowMove{0, 1, 0, 0, 0, 0, 10},    // within node 0
                          RowMove{3, 2, 0, 1, 0, 0, 10},    // out of the relay's arena
                          RowMove{1, 2, 0, 0, 0, 10, 10},   // across
                          RowMove{0, 3, 0, 0, 0, 0, 10},    // across
                          RowMove{2, 3, 0, 1, 10, 10, 10},  // out of the relay's arena
                          RowMove{2, 3, 0, 0, 0, 20, 10}))  // within node 1
      << "rows of (from, to, shard, round, from_row, to_row, rows)";
  EXPECT_TRUE(has_relays(plan.exchange));
}

TEST(Relays, HalveWhatCrossesAndKeepTheTotal) {
  PlanOptions options = two_nodes();
  const TrafficReport with = forward_traffic(make_plan(options, {{40, {40}}}));
  options.node_fetch = false;
  const PoolPlan plain = make_plan(options, {{40, {40}}});
  const TrafficReport without = forward_traffic(plain);
  EXPECT_FALSE(has_relays(plain.exchange));
  EXPECT_EQ(with.total(), without.total());
  EXPECT_EQ(with.inter_node(2) * 2, without.inter_node(2));
}

TEST(Relays, AreNotNeededWhereEveryWorkerIsANodeOrAllAreOne) {
  for (const std::int32_t gpus_per_node : {1, 4, 8}) {
    PlanOptions options = two_nodes();
    options.gpus_per_node = gpus_per_node;
    PoolPlan plan = make_plan(options, {{40, {40}}});
    EXPECT_FALSE(has_relays(plan.exchange));
    options.node_fetch = false;
    EXPECT_EQ(plan.exchange, make_plan(options, {{40, {40}}}).exchange);
  }
}

// Two samples that both workers of node 1 need in full: one relay each.
TEST(Relays, TakeTurnsWhereFetchesAreEqual) {
  const std::vector<KvFetch> fetches = {
      {2, 0, 0, 20, 0}, {2, 0, 1, 20, 20}, {3, 0, 0, 20, 0}, {3, 0, 1, 20, 20}};
  PlanOptions options = two_nodes();
  options.cp = 2;
  const HomeLayout layout =
      make_home_layout(options, std::vector<PackedSequence>{{40, {20, 20}}, {40, {}}});
  const Relays relays = choose_relays(options, layout, KvGroups(options, layout), fetches);
  const std::vector<std::int32_t> of = {relays.of(0, 0), relays.of(1, 0), relays.of(2, 0),
                                        relays.of(3, 0)};
  EXPECT_THAT(of, ElementsAre(0, 3, 0, 3));
}

TEST(Relays, HoldThreeSlotsOfKeysAndOfTheirGradients) {
  PlanOptions options = two_nodes();
  options.shape = {4, 4, 4, 4};
  options.chunks = 4;
  const PoolPlan plan = make_plan(options, {{40, {40}}});
  const std::vector<WorkerMemory> memory = plan_memory(plan);
  EXPECT_EQ(memory[3].arena.k.slots, 3);
  EXPECT_EQ(memory[3].arena.dv.slots, 3);
  EXPECT_EQ(memory[3].arena.q.slots, 2);
  EXPECT_EQ(memory[3].arena.dk_relay.rows, 10);
  EXPECT_EQ(memory[3].arena.dk_relay.slots, 3);
  EXPECT_EQ(memory[2].arena.dk_relay.rows, 10);
  EXPECT_EQ(memory[1].arena.dk_relay.rows, 0);
  EXPECT_EQ(memory[0].arena.dk_home.rows, 20);  // to worker 1 and to worker 3, not to worker 2
}

using Group = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // node, KV shard, sample

// Of the longest prefix that a worker of the node fetches, the rows that the node does not hold.
std::map<Group, std::int64_t> rows_that_must_cross(const PoolPlan& plan) {
  const KvGroups groups(plan.options, plan.layout);
  std::map<Group, std::int64_t> rows;
  for (const KvFetch& fetch : plan.exchange.fetches) {
    const std::int32_t node = plan.options.node_of(fetch.destination);
    std::int64_t outside = 0;
    for (const Fragment& fragment : plan.layout.fragments_of(fetch.sample)) {
      const std::int32_t home =
          fragment.part * plan.options.tp + groups.head_part_of_kv_shard(fetch.kv_shard);
      if (plan.options.node_of(home) != node)
        outside += intersect(fragment.tokens, {0, fetch.tokens}).size();
    }
    std::int64_t& longest = rows[{node, fetch.kv_shard, fetch.sample}];
    longest = std::max(longest, outside);
  }
  return rows;
}

TEST(Relays, LetEveryKeyCrossToANodeOnce) {
  std::int64_t passed_on = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.node_fetch = true;
    const PoolPlan plan = make_plan(options, sequences);
    std::int64_t crossing = 0;
    for (const RowMove& move : plan.exchange.kv_moves) {
      const bool crosses = options.node_of(move.from) != options.node_of(move.to);
      if (crosses) crossing += move.rows;
      if (move.round == 0) continue;
      EXPECT_FALSE(crosses) << "relays pass on within their node";
      passed_on += move.rows;
    }
    std::int64_t expected = 0;
    for (const auto& [group, rows] : rows_that_must_cross(plan)) expected += rows;
    EXPECT_EQ(crossing, expected);
  }
  EXPECT_GT(passed_on, 1000);
}

// Whatever comes to a node comes through all the ports of those that need it.
TEST(Relays, ShareWhatComesToTheirNode) {
  PlanOptions options = two_nodes();
  options.cp = 16;
  options.gpus_per_node = 8;
  options.fetch = Fetch::kWhole;
  const PoolPlan plan = make_plan(options, {{160, {160}}});
  std::vector<std::int64_t> received(at(plan.workers()), 0);
  for (const RowMove& move : plan.exchange.kv_moves) {
    if (options.node_of(move.from) != options.node_of(move.to)) {
      received[at(move.to)] += move.rows;
    }
  }
  EXPECT_THAT(received, ::testing::Each(10)) << "an eighth of the other node's 80 rows";
}

// A fetch brings in the same rows, whoever they come from.
TEST(Relays, ChangeNoWorkersFetchesAndNoBytesInAll) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    PoolPlan plan = make_plan(options, sequences);
    PlanOptions other = plan.options;
    other.node_fetch = !other.node_fetch;
    PoolPlan with_other = plan;
    with_other.options = other;
    with_other.exchange = plan_exchange(other, plan.layout, plan.tiling, plan.placement);
    EXPECT_EQ(with_other.exchange.fetches, plan.exchange.fetches);
    EXPECT_EQ(with_other.exchange.kv_copies, plan.exchange.kv_copies);
    EXPECT_EQ(forward_traffic(with_other).in_by_worker(), forward_traffic(plan).in_by_worker());
    EXPECT_EQ(backward_traffic(with_other).total(), backward_traffic(plan).total());
  }
}

}  // namespace
}  // namespace libra
