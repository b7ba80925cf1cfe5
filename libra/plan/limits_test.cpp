// The limits of docs/reliability.md, from both sides: at each a plan is made and is valid, one past
// it is one error that says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

#include "libra/base/error.h"
#include "libra/cost/device_profile.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/pool_assignment.h"
#include "libra/plan/pool_limits.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

PlanOptions one_head() {
  PlanOptions options;
  options.shape = {1, 1, 1, 1};
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = std::int64_t{1} << 30;
  return options;
}

struct Pool {
  PlanOptions options;
  std::vector<PackedSequence> sequences;
};

// "valid", "invalid", or the ConfigError.
std::string outcome(const Pool& pool, const PieceCost& cost = flops_cost) {
  try {
    return validate(make_plan(pool.options, pool.sequences, cost)).empty() ? "valid" : "invalid";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

struct Limit {
  const char* name;
  Pool (*pool)(std::int64_t value);
  std::int64_t most;
  const char* message;  // one past it
};

class Limits : public ::testing::TestWithParam<Limit> {};

TEST_P(Limits, AreReachedAndNotPassed) {
  const Limit& limit = GetParam();
  EXPECT_EQ(outcome(limit.pool(limit.most)), "valid");
  EXPECT_THAT(outcome(limit.pool(limit.most + 1)), HasSubstr(limit.message));
}

INSTANTIATE_TEST_SUITE_P(
    Planning, Limits,
    ::testing::Values(
        Limit{"Tokens",
              [](std::int64_t n) {
                return Pool{one_head(), {{n, {n / 2, n / 2}}}};
              },
              std::int64_t{1} << 30, "it may have 0 to 1073741824"},
        Limit{"BlockTokens",
              [](std::int64_t n) {
                Pool pool{one_head(), {{8, {8}}}};
                pool.options.block_tokens = n;
                return pool;
              },
              std::int64_t{1} << 30, "it may be at most 1073741824"},
        Limit{"QueryHeads",
              [](std::int64_t n) {
                Pool pool{one_head(), {{8, {8}}, {8, {3}}}};
                pool.options.shape.q_heads = static_cast<std::int32_t>(n);
                return pool;
              },
              4096, "q_heads is 4097: must be in [1, 4096]"},
        Limit{"HeadDim",
              [](std::int64_t n) {
                Pool pool{one_head(), {{8, {8}}, {8, {3}}}};
                pool.options.shape.head_dim = static_cast<std::int32_t>(n);
                return pool;
              },
              1024, "head_dim is 1025: must be in [1, 1024]"},
        Limit{"ValueDim",
              [](std::int64_t n) {
                Pool pool{one_head(), {{8, {8}}, {8, {3}}}};
                pool.options.shape.value_dim = static_cast<std::int32_t>(n);
                return pool;
              },
              1024, "value_dim is 1025: must be in [1, 1024]"},
        Limit{"WorkersOfASequence",
              [](std::int64_t n) {
                Pool pool{one_head(), {{100, {60, 40}}}};
                pool.options.cp = static_cast<std::int32_t>(n);
                return pool;
              },
              65'536, "CP is 65537: it may be at most 65536"},
        Limit{"WorkersOfAPool",
              [](std::int64_t n) {
                Pool pool{one_head(), std::vector<PackedSequence>(static_cast<std::size_t>(n))};
                pool.sequences[0] = {100, {60, 40}};
                pool.options.cp = 16'384;
                return pool;
              },
              4, "more than the 65536 workers a pool may have"},
        Limit{"Chunks",
              [](std::int64_t n) {
                Pool pool{one_head(), {{8, {8}}, {8, {3}}}};
                pool.options.shape.q_heads = static_cast<std::int32_t>(n);
                pool.options.chunks = static_cast<std::int32_t>(n);
                return pool;
              },
              256, "is 257: it may be at most 256"},
        Limit{"Tau",
              [](std::int64_t n) {
                Pool pool{one_head(), {{8, {8}}, {8, {3}}}};
                pool.options.tau_ppm = static_cast<std::int32_t>(n);
                return pool;
              },
              100'000'000, "is not between 0 and 100"},
        Limit{"SamplesTimesTokens",  // no sample may be longer than what is left
              [](std::int64_t n) {
                return Pool{one_head(), {{100, {60, n}}}};
              },
              40, "longer than its 100 tokens"}),
    [](const auto& limit) { return std::string(limit.param.name); });

TEST(Limits, PairsTimesHeadsStayBelow2To60) {
  Pool pool{one_head(), {{std::int64_t{1} << 29, {std::int64_t{1} << 29}}}};
  pool.options.shape = {7, 7, 1, 1};
  EXPECT_EQ(outcome(pool), "valid");
  pool.options.shape = {8, 8, 1, 1};
  EXPECT_THAT(outcome(pool), HasSubstr("query-key pairs x heads: it must be less than 1.2e+18"));
}

TEST(Limits, TilesStayBelow2To30) {
  Pool pool{one_head(), {{1 << 19, {1 << 19}}}};
  pool.options.shape.q_heads = 4096;
  pool.options.head_shards = 4096;
  pool.options.block_tokens = 1;
  EXPECT_THAT(outcome(pool), HasSubstr("tiles: it must be less than 1.1e+09"));
}

TEST(Limits, BytesStayBelow2To60) {
  Pool pool{one_head(), {{1 << 24, {}}}};
  pool.options.shape = {4096, 4096, 1024, 1024};
  pool.options.cp = 4096;
  EXPECT_THAT(outcome(pool), HasSubstr("bytes of Q, K, V and O if every worker held all"));
}

// In any unit, whatever a cost function says.
TEST(Limits, CostsOfAllTilesAreAtMost2To60) {
  Pool pool{one_head(), {{4, {4}}}};
  pool.options.block_tokens = 1;
  const auto each = [](std::int64_t cost) {
    return [cost](TokenRange, std::int32_t) { return cost; };
  };
  EXPECT_EQ(outcome(pool, each(kMaxTotalCost / 4)), "valid");
  EXPECT_THAT(outcome(pool, each(kMaxTotalCost / 4 + 1)), HasSubstr("tiles cost more than"));
  EXPECT_THAT(outcome(pool, each(std::numeric_limits<std::int64_t>::max())),
              HasSubstr("tiles cost more than"));
  EXPECT_THAT(outcome(pool, each(-1)), HasSubstr("tiles cost more than"));
}

TEST(Limits, SamplesHaveAtMost2To24TokensIfCostsAreSeconds) {
  const auto device = std::make_shared<const DeviceProfile>(find_device_profile("h200"));
  const std::int64_t most = DeviceProfile::kMaxSampleTokens;
  EXPECT_EQ(outcome({one_head(), {{most, {most}}}}, seconds_cost(device)), "valid");
  EXPECT_THAT(outcome({one_head(), {{most + 1, {most + 1}}}}, seconds_cost(device)),
              HasSubstr("a sample of 16777217 tokens is too long for costs in seconds"));
}

TEST(Limits, AWindowsCostsAreAtMost2To62) {
  const std::vector<std::int64_t> most(4, kMaxWindowCost / 4);
  for (const Grouping grouping : {Grouping::kZigzagSwap, Grouping::kVrsp, Grouping::kVrspRefined}) {
    EXPECT_DOUBLE_EQ(imbalance(most, assign_pools(most, 2, grouping)), 1);
  }
  std::vector<std::int64_t> beyond = most;
  ++beyond[2];
  EXPECT_THROW(assign_pools(beyond, 2, Grouping::kVrsp), ConfigError);
  beyond[2] = -1;
  EXPECT_THROW(assign_pools(beyond, 2, Grouping::kVrsp), ConfigError);
}

TEST(Limits, AWindowHasAtMost2To24Sequences) {
  EXPECT_NO_THROW(check_window(1 << 24, 1 << 20, 1 << 10));
  EXPECT_THROW(check_window((1 << 24) + 1, 1, 1), ConfigError);
}

// One worker computes and fetches everything that 256 hold: the largest bytes, rows and loads.
TEST(Limits, AMillionTokensTimes64HeadsTimesDim256On256WorkersDoNotOverflowAnywhere) {
  constexpr std::int64_t kTokens = 1 << 20;
  PlanOptions options;
  options.shape = {64, 64, 256, 256};
  options.storage = DType::kFp64;
  options.cp = 32;
  options.head_shards = 8;
  options.chunks = 1;
  options.block_tokens = kTokens / 32;
  options.placer = PlacerKind::kNone;
  options.backward = BackwardMode::kRefetch;
  const std::vector<PackedSequence> sequences(8, {kTokens, {kTokens}});
  const PoolPlan home = make_plan(options, sequences);
  std::vector<std::int64_t> costs;
  for (const Block& block : home.tiling.blocks) costs.push_back(block.cost);
  const std::vector<std::int32_t> all_at_one(home.placement.destination.size(), 255);
  const PoolPlan plan = rebuild_plan(options, sequences, costs, all_at_one);
  EXPECT_TRUE(validate(plan).empty());
  EXPECT_EQ(plan.placement.heaviest(), 8 * 64 * (kTokens * (kTokens + 1) / 2));
  // Q and O of all rows but the worker's own, K and V of all keys, 8 bytes each.
  const std::int64_t row_bytes = 64 * 256 * 8;
  EXPECT_GE(forward_traffic(plan).total(), 4 * row_bytes * kTokens * 7);
  EXPECT_GE(max_memory_bytes(plan), 4 * row_bytes * kTokens * 7);
}

}  // namespace
}  // namespace libra
