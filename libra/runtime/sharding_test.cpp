#include "libra/runtime/sharding.h"

#include <gtest/gtest.h>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"

namespace libra {
namespace {

// Element (token, head, c) is its own name.
HostTensor numbered(std::int64_t tokens, std::int32_t heads) {
  HostTensor tensor(tokens, heads, 2, DType::kFp64);
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int32_t head = 0; head < heads; ++head) {
      for (std::int32_t c = 0; c < 2; ++c)
        tensor.set(token, head, c, static_cast<double>(token * 1000 + head * 10 + c));
    }
  }
  return tensor;
}

std::int32_t heads_of(const PoolPlan& plan, HeadKind kind) {
  return kind == HeadKind::kQuery ? plan.options.shape.q_heads : plan.options.shape.kv_heads;
}

void expect_round_trip(const PoolPlan& plan, std::int32_t replica, HeadKind kind) {
  const std::int64_t tokens = plan.sequences[at(replica)].tokens;
  const HostTensor sequence = numbered(tokens, heads_of(plan, kind));
  HostTensor gathered(tokens, sequence.heads(), 2, DType::kFp64);
  for (std::int32_t i = 0; i < plan.options.cp; ++i) {
    const std::int32_t worker = replica * plan.options.cp + i;
    const HostTensor own = shard_of(plan, worker, sequence, kind);
    EXPECT_EQ(own.rows(), plan.layout.part_of(worker).rows);
    EXPECT_EQ(own.heads(), sequence.heads() / plan.options.tp);
    gather_into(plan, worker, own, kind, gathered);
  }
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int32_t head = 0; head < sequence.heads(); ++head) {
      ASSERT_EQ(gathered.get(token, head, 1), sequence.get(token, head, 1));
    }
  }
}

TEST(Sharding, WhatIsShardedComesBackByGathering) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = testing::random_plan(seed, 60);
    for (std::int32_t replica = 0; at(replica) < plan.sequences.size(); ++replica) {
      expect_round_trip(plan, replica, HeadKind::kQuery);
      expect_round_trip(plan, replica, HeadKind::kKv);
    }
  }
}

TEST(Sharding, AShardHoldsItsRunsInLocalOrderAndItsHeads) {
  PlanOptions options;
  options.shape = {4, 2, 2, 2};
  options.cp = 4;
  options.tp = 2;
  options.home = HomeKind::kZigzagRow;
  options.chunks = 1;
  const PoolPlan plan = make_plan(options, {{8, {8}}});
  // Part 1 of 2 owns chunks 1 and 2 of 4; its second worker the upper heads.
  const HostTensor own = shard_of(plan, 3, numbered(8, 4), HeadKind::kQuery);
  ASSERT_EQ(own.rows(), 4);
  ASSERT_EQ(own.heads(), 2);
  EXPECT_EQ(own.get(0, 0, 0), 2020);
  EXPECT_EQ(own.get(3, 1, 1), 5031);
  EXPECT_EQ(shard_of(plan, 2, numbered(8, 2), HeadKind::kKv).get(2, 0, 0), 4000);
}

}  // namespace
}  // namespace libra
