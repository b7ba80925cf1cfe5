// fp32 and bf16 through the distributed path, as FlashAttention judges itself: the error against
// fp64 is at most twice that of the undivided computation in the same precision.
//
// Where the undivided computation happens to be exact, rounding that no division can avoid is
// allowed on top: half a step of the storage type for what is stored, and a few steps of the
// accumulation type.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "tests/dense_attention.h"
#include "tests/deviation.h"
#include "tests/pool_check.h"

namespace libra::testing {
namespace {

double step(DType dtype) { return std::ldexp(1.0, dtype == DType::kBf16 ? -7 : -23); }

PoolPlan divided_plan(DType storage, BackwardMode backward) {
  PlanOptions options;
  options.shape = {8, 2, 32, 32};
  options.storage = storage;
  options.cp = 2;
  options.home = HomeKind::kZigzagRow;
  options.block_tokens = 32;
  options.head_shards = 2;
  options.chunks = 2;
  options.backward = backward;
  options.return_lse = true;
  Rng rng(4);
  return scattered(make_plan(options, {{256, {256}}, {256, {100, 1, 77}}}), rng);
}

PoolPlan undivided_plan(const PoolPlan& plan, std::size_t replica) {
  PlanOptions options = plan.options;
  options.cp = 1;
  options.chunks = 1;
  options.block_tokens = 256;
  options.placer = PlacerKind::kNone;
  return make_plan(options, {plan.sequences[replica]});
}

// The first sequence's long sample is shared by both workers; the short ones stay.
PoolPlan plan_with_whole_samples(DType storage, BackwardMode backward) {
  PlanOptions options;
  options.shape = {8, 2, 32, 32};
  options.storage = storage;
  options.block_tokens = 32;
  options.head_shards = 2;
  options.chunks = 2;
  options.backward = backward;
  options.return_lse = true;
  return make_plan(options, {{256, {32, 160, 20, 40}}, {256, {64, 60}}});
}

// `limits`: of the divided plan's whole samples.
void expect_at_most_twice(const PoolPlan& plan, const WholeLimits& limits) {
  const DType storage = plan.options.storage;
  const std::vector<SequenceTensors> inputs = random_pool_inputs(plan, 1);
  const PoolRun divided = run_inproc(plan, inputs, limits);
  for (std::size_t replica = 0; replica < inputs.size(); ++replica) {
    const PoolRun whole = run_inproc(undivided_plan(plan, replica), {inputs[replica]});
    const LayerOutputs truth =
        dense_attention(plan.sequences[replica], inputs[replica], kSoftmaxScale);
    for (const Judged& judged : kJudged) {
      Deviation ours, reference;
      ours.add(truth.*judged.tensor, divided.sequences[replica].*judged.tensor);
      reference.add(truth.*judged.tensor, whole.sequences[0].*judged.tensor);
      const double unavoidable = 4 * step(DType::kFp32) * ours.largest +
                                 (judged.stored ? 0.5 * step(storage) * ours.largest : 0.0);
      EXPECT_GT(ours.error, 0) << judged.name << " cannot be exact";
      EXPECT_LE(ours.error, 2 * reference.error + unavoidable) << judged.name;
    }
  }
}

class LowPrecision : public ::testing::TestWithParam<std::tuple<DType, BackwardMode>> {};

TEST_P(LowPrecision, ErrorIsAtMostTwiceThatOfTheUndividedComputation) {
  const auto [storage, backward] = GetParam();
  expect_at_most_twice(divided_plan(storage, backward), {});
}

TEST_P(LowPrecision, ErrorIsAsSmallWithWholeSamples) {
  const auto [storage, backward] = GetParam();
  const WholeLimits limits{64, 16};
  const PoolPlan plan = plan_with_whole_samples(storage, backward);
  EXPECT_GE(whole_samples(plan, limits), 2);
  EXPECT_GT(plan.tiles_moved(), 0);
  expect_at_most_twice(plan, limits);
}

INSTANTIATE_TEST_SUITE_P(Precision, LowPrecision,
                         ::testing::Combine(::testing::Values(DType::kFp32, DType::kBf16),
                                            ::testing::Values(BackwardMode::kKeep,
                                                              BackwardMode::kRefetch)),
                         [](const auto& test) {
                           return std::string(dtype_name(std::get<0>(test.param))) + "_" +
                                  std::string(backward_name(std::get<1>(test.param)));
                         });

}  // namespace
}  // namespace libra::testing
