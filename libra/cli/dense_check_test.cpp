#include "libra/cli/dense_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libra/attention/reference/reference_attention.h"
#include "libra/cli/executor.h"

namespace libra::cli {
namespace {

constexpr double kScale = 0.5;

std::vector<PackedSequence> two_sequences() { return {{16, {9, 1, 0, 4}}, {16, {3, 3, 3}}}; }

PoolPlan small_plan(DType dtype, const std::vector<PackedSequence>& sequences) {
  PlanOptions options;
  options.shape = {4, 2, 8, 8};
  options.storage = dtype;
  options.cp = 2;
  options.block_tokens = 4;
  options.chunks = 2;
  options.return_lse = true;
  return make_plan(options, sequences);
}

struct Checked {
  PoolPlan plan;
  ReferenceAttention backend;
  std::vector<SequenceTensors> inputs;
  PoolRun run;
  DenseCheck check;

  explicit Checked(DType dtype, const std::vector<PackedSequence>& sequences = two_sequences())
      : plan(small_plan(dtype, sequences)),
        inputs(random_pool_inputs(plan, 1)),
        run(make_inproc_executor(std::chrono::seconds(30))->execute(plan, inputs, kScale)),
        check(backend, plan.sequences, inputs, kScale) {}
};

TEST(DenseCheckTest, RightOutputsAreWithinWhatIsAllowed) {
  for (const DType dtype : {DType::kFp64, DType::kFp32, DType::kBf16}) {
    SCOPED_TRACE(dtype_name(dtype));
    Checked c(dtype);
    EXPECT_TRUE(within(c.check.errors(c.run.sequences), c.check.allowed()));
  }
}

TEST(DenseCheckTest, OneWrongElementOfAnyOutputIsSeen) {
  Checked c(DType::kFp64);
  const std::array<HostTensor LayerOutputs::*, 5> outputs = {&LayerOutputs::o, &LayerOutputs::lse,
                                                             &LayerOutputs::dq, &LayerOutputs::dk,
                                                             &LayerOutputs::dv};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE(OutputErrors::kNames[i]);
    auto wrong = c.run.sequences;
    HostTensor& tensor = wrong[1].*outputs[i];
    tensor.set(5, 1, 0, tensor.get(5, 1, 0) + 1e-8);
    const OutputErrors errors = c.check.errors(wrong);
    EXPECT_NEAR(errors.largest[i], 1e-8, 1e-10);
    EXPECT_FALSE(within(errors, c.check.allowed()));
  }
}

// o is v there: plain attention errs by nothing.
TEST(DenseCheckTest, SamplesOfOneTokenMayErrByALastPlace) {
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    SCOPED_TRACE(dtype_name(dtype));
    Checked c(dtype, {{4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}});
    ASSERT_EQ(c.check.errors(c.run.sequences).largest[0], 0);
    const double allowed = c.check.allowed().largest[0];
    double largest = 0;
    for (const SequenceTensors& sequence : c.inputs) {
      for (std::int64_t row = 0; row < 4; ++row) {
        for (std::int32_t head = 0; head < 2; ++head) {
          for (std::int32_t d = 0; d < 8; ++d) {
            largest = std::max(largest, std::abs(sequence.v.get(row, head, d)));
          }
        }
      }
    }
    const double digits = dtype == DType::kFp32 ? 24 : 8;
    EXPECT_LE(allowed, largest * std::exp2(1 - digits));
    EXPECT_GT(allowed, largest * std::exp2(-digits));
    EXPECT_GT(c.check.allowed().largest[1], 0);
  }
}

TEST(DenseCheckTest, NanIsNeverWithin) {
  Checked c(DType::kFp32);
  c.run.sequences[0].dq.set(0, 0, 0, std::nan(""));
  const OutputErrors errors = c.check.errors(c.run.sequences);
  EXPECT_EQ(errors.largest[2], std::numeric_limits<double>::infinity());
  EXPECT_FALSE(within(errors, c.check.allowed()));
}

}  // namespace
}  // namespace libra::cli
