// Inputs that broke systems like this one, by the numbers of docs/hazards.md.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/sharding.h"
#include "libra/runtime/tensor_views.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"
#include "tests/compare_outputs.h"
#include "tests/layer_driver.h"
#include "tests/pool_check.h"
#include "tests/seat.h"

namespace libra::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PlanOptions small_options() {
  PlanOptions options;
  options.shape = {2, 1, 2, 2};
  options.storage = DType::kFp64;
  options.block_tokens = 64;
  options.head_shards = 1;
  options.chunks = 1;
  options.return_lse = true;
  return options;
}

TEST(Hazard01, AWorkerWithoutWorkHasZerosAndJoinsEveryExchange) {
  PlanOptions options = small_options();
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{50, {50}}, {50, {}}, {0, {}}});
  const std::vector<SequenceTensors> inputs = random_pool_inputs(plan, 1);
  const PoolRun run = run_inproc(plan, inputs);
  for (std::size_t replica = 0; replica < 3; ++replica) {
    expect_outputs_near(expected_outputs(plan, static_cast<std::int32_t>(replica), inputs[replica]),
                        run.sequences[replica], kTolerance);
    EXPECT_EQ(run.workers[replica].records.size(), run.workers[0].records.size());
  }
}

TEST(Hazard01, APoolWithoutASampleIsAllPadding) {
  PlanOptions options = small_options();
  options.cp = 2;
  expect_exact(make_plan(options, {{9, {}}, {9, {0, 0}}}), 1);
}

TEST(Hazard02, SamplesOfLengthZeroAndRunsOfOnesAreSamplesOfTheirOwn) {
  std::vector<std::int64_t> lengths(64, 1);
  for (std::size_t i = 0; i < lengths.size(); i += 5) lengths[i] = 0;
  for (const HomeKind home :
       {HomeKind::kContiguous, HomeKind::kZigzagRow, HomeKind::kZigzagDocument}) {
    PlanOptions options = small_options();
    options.cp = 4;
    options.home = home;
    options.block_tokens = 7;
    const PoolPlan plan = make_plan(options, {{100, lengths}, {100, {0, 97, 0, 1}}});
    expect_exact(plan, 1);
    Rng rng(2);
    expect_exact(scattered(plan, rng), 2);
  }
}

TEST(Hazard03, SeventyThousandSamplesOfOneTokenInOneSequence) {
  constexpr std::int64_t kSamples = 70'000;
  PlanOptions options = small_options();
  options.cp = 2;
  options.block_tokens = 4096;
  const PoolPlan plan =
      make_plan(options, {{kSamples, std::vector<std::int64_t>(kSamples, 1)}, {kSamples, {}}});
  EXPECT_GT(plan.tiles_moved(), 0) << "half of the entries run on fetched rows";
  expect_exact(plan, 1);
}

TEST(Hazard05, LengthsThatTwiceCpDoesNotDivide) {
  for (const HomeKind home : {HomeKind::kZigzagRow, HomeKind::kZigzagDocument}) {
    PlanOptions options = small_options();
    options.cp = 4;
    options.home = home;
    options.block_tokens = 256;
    expect_exact(make_plan(options, {{2283, {7, 137, 2041, 89}}, {2283, {89, 7}}}), 1);
  }
}

// Q, K and V as heads of one tensor, as projections give them; gradients likewise.
struct FusedQkv {
  static constexpr std::int64_t kRows = 40;
  static constexpr std::int32_t kQHeads = 4, kKvHeads = 2, kDim = 4;

  TensorView q() { return heads(0, kQHeads); }
  TensorView k() { return heads(kQHeads, kKvHeads); }
  TensorView v() { return heads(kQHeads + kKvHeads, kKvHeads); }

  HostTensor fused{kRows, kQHeads + 2 * kKvHeads, kDim, DType::kFp64};

 private:
  TensorView heads(std::int32_t first, std::int32_t count) {
    return sub_tensor(fused.view(), 0, kRows, first, count);
  }
};

// Tensors of equal extents, fp64, each with strides of its own.
void copy_elements(const TensorView& from, const TensorView& to) {
  for (std::int64_t row = 0; row < from.rows; ++row) {
    for (std::int32_t head = 0; head < from.heads; ++head) {
      const auto at_head = [row, head](const TensorView& tensor) {
        return static_cast<double*>(tensor.data) + row * tensor.row_stride +
               head * tensor.head_stride;
      };
      std::copy_n(at_head(from), from.dim, at_head(to));
    }
  }
}

HostTensor dense_copy(const TensorView& tensor) {
  HostTensor copy(tensor.rows, tensor.heads, tensor.dim, DType::kFp64);
  copy_elements(tensor, copy.view());
  return copy;
}

FusedQkv fused(SequenceTensors& in) {
  FusedQkv qkv;
  copy_elements(in.q.view(), qkv.q());
  copy_elements(in.k.view(), qkv.k());
  copy_elements(in.v.view(), qkv.v());
  return qkv;
}

void run_layer_on_fused_tensors(const PoolPlan& plan, Transport& transport) {
  const std::int32_t worker = transport.worker();
  SequenceTensors in = random_inputs(plan, worker, 1);
  FusedQkv qkv = fused(in), gradients;
  HostTensor o = in.d_o, lse(FusedQkv::kRows, FusedQkv::kQHeads, 1, DType::kFp64);
  std::vector<std::byte> saved(at(plan_memory(plan)[at(worker)].saved.bytes));
  std::vector<std::byte> scratch(at(plan_memory(plan)[at(worker)].scratch.bytes));
  Seat seat(transport);
  const auto pipeliner = seat.pipeliner(plan);
  pipeliner->forward({qkv.q(), qkv.k(), qkv.v(), o.view(), lse.view()}, kSoftmaxScale, saved.data(),
                     seat.stream);
  pipeliner->backward({qkv.q(), qkv.k(), qkv.v(), o.view(), lse.view(), in.d_o.view(),
                       gradients.q(), gradients.k(), gradients.v()},
                      kSoftmaxScale, saved.data(), scratch.data(), seat.stream);
  seat.stream.synchronize();
  expect_outputs_near(
      expected_outputs(plan, worker, in),
      {o, lse, dense_copy(gradients.q()), dense_copy(gradients.k()), dense_copy(gradients.v())},
      kTolerance);
}

TEST(Hazard07, RowStridesAreHonoured) {
  PlanOptions options = small_options();
  options.shape = {FusedQkv::kQHeads, FusedQkv::kKvHeads, FusedQkv::kDim, FusedQkv::kDim};
  options.chunks = 2;
  const PoolPlan plan = make_plan(options, {{FusedQkv::kRows, {40}}, {FusedQkv::kRows, {3, 5}}});
  const auto endpoints = make_inproc_group(2, {});
  EXPECT_THAT(
      on_every_worker(endpoints,
                      [&](Transport& transport) { run_layer_on_fused_tensors(plan, transport); }),
      Each(IsEmpty()));
}

TEST(Hazard08, RowsBeyondTheLastSampleAreZeroAndHaveZeroGradients) {
  PlanOptions options = small_options();
  options.cp = 2;
  const PoolPlan plan = make_plan(options, {{946, {900, 44}}, {946, {}}});
  EXPECT_GT(plan.tiles_moved(), 0);
  expect_exact(plan, 1);
}

struct Heads {
  AttentionShape shape;
  std::int32_t head_shards, chunks;
};

class Hazard09 : public ::testing::TestWithParam<Heads> {};

TEST_P(Hazard09, HeadCountsAndDimensionsWork) {
  for (const BackwardMode backward : {BackwardMode::kKeep, BackwardMode::kRefetch}) {
    PlanOptions options = small_options();
    options.shape = GetParam().shape;
    options.head_shards = GetParam().head_shards;
    options.chunks = GetParam().chunks;
    options.cp = 2;
    options.block_tokens = 8;
    options.backward = backward;
    const PoolPlan plan = make_plan(options, {{32, {32}}, {32, {9, 1}}});
    EXPECT_GT(plan.tiles_moved(), 0);
    expect_exact(plan, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Heads, Hazard09,
    ::testing::Values(Heads{{40, 8, 4, 4}, 4, 2},     // g = 5
                      Heads{{40, 8, 4, 4}, 8, 5},     // several chunks on one KV head
                      Heads{{16, 2, 4, 4}, 8, 2},     // h_kv < H
                      Heads{{4, 2, 64, 64}, 2, 1},    //
                      Heads{{4, 2, 96, 96}, 2, 2},    //
                      Heads{{4, 2, 128, 128}, 2, 2},  //
                      Heads{{4, 2, 192, 128}, 2, 2},  // d_k != d_v
                      Heads{{2, 1, 256, 256}, 1, 2}),
    [](const auto& test) {
      const AttentionShape& shape = test.param.shape;
      return fmt::format("q{}_kv{}_dk{}_dv{}_H{}_M{}", shape.q_heads, shape.kv_heads,
                         shape.head_dim, shape.value_dim, test.param.head_shards,
                         test.param.chunks);
    });

TEST(Hazard09, HeadsOfAShardThatChunksDoNotDivideAreAnErrorWithTheNearestLegalValue) {
  PlanOptions options = small_options();
  options.shape = {40, 8, 128, 128};
  options.head_shards = 4;
  options.chunks = 4;
  try {
    make_plan(options, {{16, {16}}});
    FAIL() << "10 heads cannot be cut into 4 chunks";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("chunks"));
    EXPECT_THAT(error.what(), HasSubstr("nearest legal"));
  }
}

// What a worker's plan is when it differs from the others' in one thing.
class Hazard11 : public ::testing::TestWithParam<int> {};

PoolPlan plan_of_kind(int kind) {
  PlanOptions options = small_options();
  options.shape = {4, 2, 4, 4};
  std::vector<PackedSequence> sequences{{16, {16}}, {16, {2, 2, 2}}, {16, {7}}};
  if (kind == 1) sequences[1].sample_tokens = {2, 2, 3};
  if (kind == 2) options.chunks = 2;
  if (kind == 3) options.backward = BackwardMode::kRefetch;
  if (kind == 4) options.tau_ppm = 50'000;
  if (kind == 5) options.cp = 2;  // another number of workers
  return make_plan(options, sequences);
}

TEST_P(Hazard11, WorkersWithDifferentPlansGetAnErrorEach) {
  const auto endpoints = make_inproc_group(3, {});
  const auto errors = on_every_worker(endpoints, [](Transport& transport) {
    const PoolPlan plan = plan_of_kind(transport.worker() == 1 ? GetParam() : 0);
    ReferenceAttention attention;
    WorkerRun run(plan, {transport, attention});
  });
  EXPECT_THAT(errors[0], HasSubstr("worker 0 and worker 1 hold different plans"));
  EXPECT_THAT(errors[1], HasSubstr("worker 1 and workers 0, 2 hold different plans"));
  EXPECT_THAT(errors[2], HasSubstr("worker 2 and worker 1 hold different plans"));
}

INSTANTIATE_TEST_SUITE_P(Plans, Hazard11, ::testing::Values(1, 2, 3, 4, 5));

// Every worker sends all its tiles to the next one.
PoolPlan with_all_at_the_next(const PoolPlan& plan) {
  std::vector<std::int32_t> destination;
  destination.reserve(at(plan.tiling.tiles()));
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    destination.push_back((plan.tiling.home_of(tile) + 1) % plan.workers());
  }
  return with_tiles_at(plan, destination);
}

// Each worker makes plans in an order of its own; they exchange nothing for it and agree.
TEST(Hazard19, PlanningNeedsNoCollective) {
  const auto endpoints = make_inproc_group(3, {});
  const auto errors = on_every_worker(endpoints, [](Transport& transport) {
    for (int i = 0; i < 5 * transport.worker(); ++i) plan_of_kind((i + transport.worker()) % 5);
    EXPECT_TRUE(transport.take_records().empty());
    const PoolPlan plan = with_all_at_the_next(plan_of_kind(0));
    ReferenceAttention attention;
    WorkerRun run(plan, {transport, attention});
    run.execute(random_inputs(plan, transport.worker(), 1), kSoftmaxScale);
    // Forward: own tensors out, results in, foreign ones in, results out; backward: gradients, too.
    EXPECT_EQ(run.records().size(), 1U + 4 + 6) << "fingerprints, then forward and backward";
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

// With AddressSanitizer: nothing reads or writes what is freed right after the stream is idle.
TEST(Hazard20, BuffersMayBeFreedAsSoonAsTheStreamHasPassed) {
  PlanOptions options = small_options();
  options.shape = {8, 2, 4, 4};
  options.chunks = 4;
  options.block_tokens = 8;
  const PoolPlan plan = dealt_round(make_plan(options, {{48, {48}}, {48, {20, 9}}}));
  const auto endpoints = make_inproc_group(2, {});
  const auto errors = on_every_worker(endpoints, [&](Transport& transport) {
    Seat seat(transport);
    const auto pipeliner = seat.pipeliner(plan);
    for (std::uint64_t layer = 0; layer < 5; ++layer) {
      const auto driver = std::make_unique<LayerDriver>(plan, transport.worker(), layer);
      driver->forward(*pipeliner, seat.stream);
      driver->backward(*pipeliner, seat.stream);
      seat.stream.synchronize();
      EXPECT_EQ(driver->wrong_in_forward() + driver->wrong_in_backward(), "");
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

}  // namespace
}  // namespace libra::testing
