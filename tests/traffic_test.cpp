// What the workers really sent and received, against what the plan says.
#include "libra/plan/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "tests/matrix_fraction.h"
#include "tests/pool_check.h"

namespace libra::testing {
namespace {

using ::testing::Each;

struct Bytes {
  std::vector<std::int64_t> in, out;  // by worker
};

bool is_forward(Phase phase) {
  return phase == Phase::kForwardDispatch || phase == Phase::kForwardReturn;
}

Bytes measured(const PoolRun& run, bool forward) {
  Bytes bytes{std::vector<std::int64_t>(run.workers.size()),
              std::vector<std::int64_t>(run.workers.size())};
  for (std::size_t worker = 0; worker < run.workers.size(); ++worker) {
    for (const ExchangeRecord& record : run.workers[worker].records) {
      if (record.tag.phase == Phase::kAgree || is_forward(record.tag.phase) != forward) continue;
      bytes.in[worker] += record.bytes_received;
      bytes.out[worker] += record.bytes_sent;
    }
  }
  return bytes;
}

void expect_traffic(const TrafficReport& planned, const Bytes& found) {
  EXPECT_EQ(planned.in_by_worker(), found.in);
  EXPECT_EQ(planned.out_by_worker(), found.out);
}

TEST(Traffic, WorkersSendAndReceiveWhatThePlanSays) {
  for (std::uint64_t seed = 0; seed < 100; seed += static_cast<std::uint64_t>(matrix_fraction())) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    PoolPlan plan = random_plan(seed, 60);
    plan.options.storage = seed % 2 == 0 ? DType::kBf16 : DType::kFp64;
    const PoolRun run = run_inproc(plan, random_pool_inputs(plan, seed));
    expect_traffic(forward_traffic(plan), measured(run, true));
    expect_traffic(backward_traffic(plan), measured(run, false));
  }
}

// Sent plus received, by worker and chunk.
std::map<std::int32_t, std::vector<std::int64_t>> by_chunk(const PoolRun& run, Phase phase,
                                                           std::int32_t chunks) {
  std::map<std::int32_t, std::vector<std::int64_t>> bytes;
  for (std::size_t worker = 0; worker < run.workers.size(); ++worker) {
    std::vector<std::int64_t>& own = bytes[static_cast<std::int32_t>(worker)];
    own.resize(at(chunks));
    for (const ExchangeRecord& record : run.workers[worker].records) {
      if (record.tag.phase != phase) continue;
      own[at(record.tag.chunk)] += record.bytes_sent + record.bytes_received;
    }
  }
  return bytes;
}

// As many KV heads in a shard as chunks: every chunk has keys of its own.
TEST(Traffic, EveryChunkOfAWorkerMovesTheSameBytes) {
  PlanOptions options;
  options.shape = {8, 4, 6, 4};
  options.storage = DType::kFp32;
  options.cp = 2;
  options.block_tokens = 8;
  options.head_shards = 1;
  options.chunks = 4;
  options.backward = BackwardMode::kRefetch;
  const PoolPlan plan = dealt_round(make_plan(options, {{40, {40}}, {40, {7, 13, 9}}}));
  const PoolRun run = run_inproc(plan, random_pool_inputs(plan, 1));
  for (const Phase phase :
       {Phase::kForwardDispatch, Phase::kForwardReturn, Phase::kBackwardDispatch,
        Phase::kBackwardReturn, Phase::kGradientReturn}) {
    for (const auto& [worker, bytes] : by_chunk(run, phase, options.chunks)) {
      EXPECT_GT(bytes[0], 0) << "worker " << worker;
      EXPECT_THAT(bytes, Each(bytes[0])) << "worker " << worker;
    }
  }
}

// Four chunks over two KV heads: K and V go with chunks 0 and 2.
TEST(Traffic, AKvHeadIsSentOnceWithTheFirstChunkThatUsesIt) {
  PlanOptions options;
  options.shape = {8, 2, 4, 4};
  options.storage = DType::kFp64;
  options.head_shards = 1;
  options.chunks = 4;
  const PoolPlan plan = with_tiles_at(make_plan(options, {{16, {16}}, {16, {}}}), {1});
  const PoolRun run = run_inproc(plan, random_pool_inputs(plan, 1));
  const std::int64_t q = 16 * 2 * 4 * 8;
  const std::int64_t kv = 2 * 16 * 1 * 4 * 8;
  EXPECT_THAT(by_chunk(run, Phase::kForwardDispatch, 4)[0],
              ::testing::ElementsAre(q + kv, q, q + kv, q));
}

}  // namespace
}  // namespace libra::testing
