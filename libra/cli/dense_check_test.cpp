#include "libra/cli/dense_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "libra/attention/reference/reference_attention.h"
#include "libra/cli/executor.h"

namespace libra::cli {
namespace {

constexpr double kScale = 0.5;

PoolPlan small_plan(DType dtype) {
  PlanOptions options;
  options.shape = {4, 2, 8, 8};
  options.storage = dtype;
  options.cp = 2;
  options.block_tokens = 4;
  options.chunks = 2;
  options.return_lse = true;
  return make_plan(options, {{16, {9, 1, 0, 4}}, {16, {3, 3, 3}}});
}

struct Checked {
  PoolPlan plan;
  ReferenceAttention backend;
  std::vector<SequenceTensors> inputs;
  PoolRun run;
  DenseCheck check;

  explicit Checked(DType dtype)
      : plan(small_plan(dtype)),
        inputs(random_pool_inputs(plan, 1)),
        run(make_inproc_executor(std::chrono::seconds(30))->execute(plan, backend, inputs, kScale)),
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

TEST(DenseCheckTest, NanIsNeverWithin) {
  Checked c(DType::kFp32);
  c.run.sequences[0].dq.set(0, 0, 0, std::nan(""));
  const OutputErrors errors = c.check.errors(c.run.sequences);
  EXPECT_EQ(errors.largest[2], std::numeric_limits<double>::infinity());
  EXPECT_FALSE(within(errors, c.check.allowed()));
}

}  // namespace
}  // namespace libra::cli
