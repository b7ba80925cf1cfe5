// Exactness beyond the matrix: random pools, and passes in every order that training knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/tensor_views.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"
#include "tests/disturbed_attention.h"
#include "tests/in_lanes.h"
#include "tests/layer_driver.h"
#include "tests/matrix_fraction.h"
#include "tests/pool_check.h"
#include "tests/seat.h"
#include "tests/transport_decorator.h"

namespace libra::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

TEST(Exactness, RandomPoolsEqualPlainAttention) {
  constexpr std::uint64_t kPools = 300;
  for (std::uint64_t seed = 0; seed < kPools;
       seed += static_cast<std::uint64_t>(matrix_fraction())) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(expect_exact(random_plan(seed, 70), seed));
    if (HasFailure()) return;
  }
}

TEST(Exactness, RandomPoolsWithWholeSamplesEqualPlainAttention) {
  constexpr std::uint64_t kPools = 300;
  std::int64_t whole = 0;
  for (std::uint64_t seed = 0; seed < kPools;
       seed += static_cast<std::uint64_t>(matrix_fraction())) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 3);
    const WholeLimits limits{between(rng, 5, 70), between(rng, 1, 10)};
    const PoolPlan plan = mostly_at_home(seed, 70);
    whole += whole_samples(plan, limits);
    ASSERT_NO_FATAL_FAILURE(expect_exact(plan, seed, limits));
    if (HasFailure()) return;
  }
  EXPECT_GT(whole * matrix_fraction(), static_cast<std::int64_t>(kPools));
}

// Runs of whole samples on both sides of one that all workers share, and some too short to count.
TEST(Exactness, APoolWithWholeSamplesOfUsualSizeEqualsPlainAttention) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.storage = DType::kFp64;
  options.block_tokens = 256;
  options.head_shards = 2;
  options.chunks = 2;
  const PoolPlan plan = make_plan(options, {{6000, {900, 700, 500, 3000, 800}},
                                            {6000, std::vector<std::int64_t>(40, 77)},
                                            {6000, {1500, 600, 10}}});
  EXPECT_GT(plan.tiles_moved(), 0);
  const std::int64_t whole = whole_samples(plan);
  EXPECT_GT(whole, 20);
  EXPECT_LT(whole, 48);
  expect_exact(plan, 1);
}

struct Busy {
  const char* name;
  BackwardMode backward;
  std::int32_t kv_heads;
  std::int32_t chunks;
  bool node_fetch;
};

// Four workers that all compute for each other, zigzag homes. With node fetch two nodes, and KV
// chunks enough that slots are used again.
PoolPlan busy_plan(const Busy& busy, std::int64_t tokens = 48) {
  PlanOptions options;
  options.shape = {8, busy.kv_heads, 6, 4};
  options.storage = DType::kFp64;
  options.cp = 2;
  options.home = HomeKind::kZigzagDocument;
  options.block_tokens = 5;
  options.head_shards = 1;
  options.chunks = busy.chunks;
  options.backward = busy.backward;
  options.gpus_per_node = 2;
  options.node_fetch = busy.node_fetch;
  PoolPlan plan =
      dealt_round(make_plan(options, {{tokens, {tokens / 2, 5, 0, 1}}, {tokens, {tokens - 3}}}));
  EXPECT_EQ(has_relays(plan.exchange), busy.node_fetch);
  return plan;
}

constexpr Busy kBusy[] = {{"keep", BackwardMode::kKeep, 2, 4, false},
                          {"refetch", BackwardMode::kRefetch, 2, 4, false},
                          {"keep_relays", BackwardMode::kKeep, 4, 8, true},
                          {"refetch_relays", BackwardMode::kRefetch, 4, 8, true},
                          {"keep_relays_kv_8", BackwardMode::kKeep, 8, 8, true},
                          {"refetch_relays_kv_8", BackwardMode::kRefetch, 8, 8, true},
                          {"refetch_relays_m_1", BackwardMode::kRefetch, 2, 1, true}};

// Forward and backward of one layer, so many times without a wait in between.
void expect_right_passes(const PoolPlan& plan, Transport& transport, int passes) {
  LayerDriver layer(plan, transport.worker(), 1);
  Seat seat(transport);
  const auto pipeliner = seat.pipeliner(plan);
  for (int pass = 0; pass < passes; ++pass) {
    layer.forward(*pipeliner, seat.stream);
    layer.backward(*pipeliner, seat.stream);
  }
  seat.stream.synchronize();
  EXPECT_EQ(layer.wrong_in_forward() + layer.wrong_in_backward(), "");
}

// Passes of a few layers on every worker of the busy plan, in the order that a test gives.
class PassOrders : public ::testing::TestWithParam<Busy> {
 protected:
  template <typename Body>
  void run(const Body& body) {
    const auto endpoints = make_inproc_group(plan_.workers(), {});
    EXPECT_THAT(on_every_worker(endpoints, body), Each(IsEmpty()));
  }

  PoolPlan plan_ = busy_plan(GetParam());
};

TEST_P(PassOrders, SeveralLayersShareOnePlan) {
  run([this](Transport& transport) {
    LayerDriver first(plan_, transport.worker(), 1), second(plan_, transport.worker(), 2);
    Seat seat(transport);
    const auto pipeliner = seat.pipeliner(plan_);
    first.forward(*pipeliner, seat.stream);
    second.forward(*pipeliner, seat.stream);
    second.backward(*pipeliner, seat.stream);
    first.backward(*pipeliner, seat.stream);
    seat.stream.synchronize();
    EXPECT_EQ(first.wrong_in_forward() + first.wrong_in_backward(), "");
    EXPECT_EQ(second.wrong_in_forward() + second.wrong_in_backward(), "");
  });
}

TEST_P(PassOrders, Hazard14EvaluationBetweenForwardAndBackwardUsesItsOwnPlan) {
  const PoolPlan evaluation = busy_plan(GetParam(), 30);
  run([&, this](Transport& transport) {
    LayerDriver train(plan_, transport.worker(), 1), validate(evaluation, transport.worker(), 2);
    Seat seat(transport);
    const auto evaluated = seat.pipeliner(evaluation);
    const auto trained = seat.pipeliner(plan_);
    train.forward(*trained, seat.stream);
    validate.forward(*evaluated, seat.stream);
    train.backward(*trained, seat.stream);
    validate.forward(*evaluated, seat.stream);
    seat.stream.synchronize();
    EXPECT_EQ(train.wrong_in_forward() + train.wrong_in_backward(), "");
    EXPECT_EQ(validate.wrong_in_forward(), "");
  });
}

TEST_P(PassOrders, Hazard15RecomputedForwardServesTheBackward) {
  run([this](Transport& transport) {
    LayerDriver layer(plan_, transport.worker(), 1);
    Seat seat(transport);
    const auto pipeliner = seat.pipeliner(plan_);
    layer.forward(*pipeliner, seat.stream);
    seat.stream.synchronize();
    layer.saved().reset();  // what activation recompute throws away
    layer.forward(*pipeliner, seat.stream);
    layer.backward(*pipeliner, seat.stream);
    seat.stream.synchronize();
    EXPECT_EQ(layer.wrong_in_forward() + layer.wrong_in_backward(), "");
  });
}

TEST_P(PassOrders, ArenasAreReusedOverManyPasses) {
  run([this](Transport& transport) { expect_right_passes(plan_, transport, 20); });
}

// One worker is later than all others with everything: who does not wait for it has wrong results,
// or overwrites what it has not fetched yet.
TEST_P(PassOrders, AnyWorkerMayBeLate) {
  for (std::int32_t late = 0; late < plan_.workers(); ++late) {
    SCOPED_TRACE(::testing::Message() << "worker " << late);
    run([this, late](Transport& transport) {
      const bool is_late = transport.worker() == late;
      DisturbedAttention attention(late_by(std::chrono::microseconds(is_late ? 500 : 0)));
      LayerDriver layer(plan_, transport.worker(), 1);
      Seat seat(transport, attention);
      const auto pipeliner = seat.pipeliner(plan_);
      layer.forward(*pipeliner, seat.stream);
      seat.stream.synchronize();
      std::memset(transport.arena(), 0xA5, at(transport.arena_bytes()));  // nobody's after a pass
      EXPECT_EQ(layer.wrong_in_forward(), "");
      layer.forward(*pipeliner, seat.stream);
      layer.backward(*pipeliner, seat.stream);
      layer.backward(*pipeliner, seat.stream);
      seat.stream.synchronize();
      EXPECT_EQ(layer.wrong_in_backward(), "");
    });
  }
}

// Receives run on the worker's own stream, as where all of a device's streams share one queue: a
// receive that is enqueued before what its peer waits for would never end.
class OneQueue final : public TransportDecorator {
 public:
  using TransportDecorator::TransportDecorator;
  bool posts_ahead() const override { return false; }
  Handle post(const Exchange& exchange, Stream& stream) override {
    const Handle sent = TransportDecorator::post({exchange.tag, exchange.sends, {}}, stream);
    wait(TransportDecorator::post({exchange.tag, {}, exchange.receives}, stream), stream);
    return sent;
  }
};

TEST_P(PassOrders, AreRightOnASingleInOrderQueue) {
  const auto endpoints = decorated<OneQueue>(make_inproc_group(plan_.workers(), {}));
  const auto errors = on_every_worker(
      endpoints, [this](Transport& transport) { expect_right_passes(plan_, transport, 1); });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// Notes whether a worker had computed anything when it passed the first keys on.
class FirstKeysWatch final : public TransportDecorator {
 public:
  using TransportDecorator::TransportDecorator;
  bool posts_ahead() const override { return false; }
  Handle post(const Exchange& exchange, Stream& stream) override {
    if (exchange.tag.round == kRelayRounds && exchange.tag.chunk == 0 && !exchange.sends.empty()) {
      EXPECT_THAT(log->events(), IsEmpty()) << "worker " << worker();
      ++passed_on;
    }
    return TransportDecorator::post(exchange, stream);
  }

  const EventLog* log = nullptr;
  int passed_on = 0;
};

// A node's computation hangs on them, so they don't wait for a relay's local work.
TEST(Exactness, RelaysPassTheFirstKeysOnBeforeTheyCompute) {
  const PoolPlan plan = busy_plan({"relays", BackwardMode::kRefetch, 4, 8, true});
  const auto endpoints = decorated<FirstKeysWatch>(make_inproc_group(plan.workers(), {}));
  std::atomic<int> passed_on = 0;
  const auto errors = on_every_worker(endpoints, [&](Transport& transport) {
    auto& watch = dynamic_cast<FirstKeysWatch&>(transport);
    LayerDriver layer(plan, transport.worker(), 1);
    Seat seat(transport);
    watch.log = &seat.log;
    const auto pipeliner = seat.pipeliner(plan);
    layer.forward(*pipeliner, seat.stream);
    seat.stream.synchronize();
    EXPECT_EQ(layer.wrong_in_forward(), "");
    EXPECT_FALSE(seat.log.events().empty());
    passed_on += watch.passed_on;
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_GT(passed_on, 0);
}

// Layers after another, so that what a pass leaves in a lane meets the next one.
TEST_P(PassOrders, AreRightWithCopiesInLanes) {
  for (const std::int64_t tokens : {24, 48, 90}) {
    SCOPED_TRACE(::testing::Message() << tokens << " tokens");
    const PoolPlan plan = busy_plan(GetParam(), tokens);
    const auto endpoints = decorated<InLanes>(make_inproc_group(plan.workers(), {}));
    const auto errors = on_every_worker(
        endpoints, [&plan](Transport& transport) { expect_right_passes(plan, transport, 3); });
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

INSTANTIATE_TEST_SUITE_P(Exactness, PassOrders, ::testing::ValuesIn(kBusy),
                         [](const auto& test) { return std::string(test.param.name); });

bool same_bits(HostTensor& a, HostTensor& b) {
  const StridedView left = as_rows(a.view()), right = as_rows(b.view());
  if (left.bytes() != right.bytes()) return false;
  return left.bytes() == 0 || std::memcmp(left.data, right.data, at(left.bytes())) == 0;
}

void expect_same_bits(PoolRun first, PoolRun second) {
  for (std::size_t replica = 0; replica < first.sequences.size(); ++replica) {
    for (const auto tensor : {&LayerOutputs::o, &LayerOutputs::lse, &LayerOutputs::dq,
                              &LayerOutputs::dk, &LayerOutputs::dv}) {
      EXPECT_TRUE(same_bits(first.sequences[replica].*tensor, second.sequences[replica].*tensor));
    }
  }
}

TEST(Exactness, TheSameRunTwiceGivesTheSameBits) {
  for (const Busy& busy : kBusy) {
    for (const DType dtype : {DType::kFp32, DType::kBf16}) {
      SCOPED_TRACE(busy.name);
      PoolPlan plan = busy_plan(busy);
      plan.options.storage = dtype;
      const std::vector<SequenceTensors> inputs = random_pool_inputs(plan, 3);
      expect_same_bits(run_inproc(plan, inputs), run_inproc(plan, inputs));
    }
  }
}

PoolRun run_in_lanes(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs) {
  ReferenceAttention backend;
  const auto endpoints = decorated<InLanes>(make_inproc_group(plan.workers(), {}));
  return run_pool(plan, host_sites(endpoints, backend), inputs, kSoftmaxScale);
}

TEST(Exactness, CopiesInLanesGiveTheSameBits) {
  constexpr std::uint64_t kPools = 120;
  for (std::uint64_t seed = 1000; seed < 1000 + kPools;
       seed += static_cast<std::uint64_t>(matrix_fraction())) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed, 70);
    const std::vector<SequenceTensors> inputs = random_pool_inputs(plan, seed);
    expect_same_bits(run_inproc(plan, inputs), run_in_lanes(plan, inputs));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace libra::testing
