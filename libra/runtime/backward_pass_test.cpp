// Which gradients are written and which are summed. What comes out of a pass is checked with whole
// pools (tests/exactness_test.cpp).
#include "libra/runtime/backward_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/index.h"
#include "libra/base/task_queue.h"
#include "libra/runtime/host_tensor.h"
#include "libra/runtime/random_pools.h"
#include "libra/transport/inproc/transport.h"

namespace libra {
namespace {

using ::testing::ElementsAre;

/// The CPU backend, which may be one that cannot write, and what it was asked for.
class WatchedAttention final : public AttentionBackend {
 public:
  explicit WatchedAttention(bool writes) : writes_(writes) {}

  std::string_view name() const override { return "watched"; }
  void prepare(const AttentionCall&, const ForwardTensors&, Stream&) override {}
  void prepare(const AttentionCall& call, const BackwardTensors& tensors, Stream&) override {
    prepared.push_back(call.gradients);
    prepared_dk_stride = tensors.dk.row_stride;
  }
  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override {
    inner_.forward(call, tensors, stream);
  }
  bool can_write(const AttentionCall& call, const BackwardTensors& tensors) override {
    EXPECT_EQ(call.gradients, Gradients::kWritten);
    EXPECT_EQ(tensors.dq.dtype, tensors.q.dtype);
    return writes_;
  }
  void backward(const AttentionCall& call, const BackwardTensors& tensors,
                Stream& stream) override {
    run.push_back(call.gradients);
    inner_.backward(call, tensors, stream);
  }
  void copy(StridedView from, StridedView to, Stream& stream) override {
    inner_.copy(from, to, stream);
  }
  void fill(const TensorView& tensor, double value, Stream& stream) override {
    filled_rows += tensor.rows;
    inner_.fill(tensor, value, stream);
  }
  void add(const TensorView& from, const TensorView& to, Stream& stream) override {
    inner_.add(from, to, stream);
  }
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override {
    converted_rows += to.rows;
    inner_.convert(from, to, stream);
  }
  void poison_on_failure(const TensorView& tensor, Stream& stream) override {
    inner_.poison_on_failure(tensor, stream);
  }

  std::vector<Gradients> prepared, run;
  std::int64_t prepared_dk_stride = 0;
  std::int64_t filled_rows = 0, converted_rows = 0;

 private:
  ReferenceAttention inner_;
  bool writes_;
};

// One worker: samples of 20, 3 and 5 rows that are whole, one of 40 that is not, and 4 rows of
// padding.
PoolPlan mixed_plan(DType storage) {
  PlanOptions options;
  options.shape = {4, 2, 8, 6};
  options.storage = storage;
  options.block_tokens = 16;
  options.chunks = 2;
  return make_plan(options, {{72, {20, 3, 40, 5}}});
}

constexpr WholeLimits kLimits{30, 5};
constexpr std::int64_t kRows = 72, kWhole = 28, kPadding = 4;

/// That worker with its tensors.
class OneWorker {
 public:
  OneWorker(DType storage, bool writes) : plan_(mixed_plan(storage)), attention_(writes) {
    Rng rng(1);
    for (HostTensor* tensor : {&q_, &k_, &v_, &d_o_}) tensor->fill_normal(rng);
  }

  WatchedAttention& attention() { return attention_; }
  std::int64_t kv_rows_apart = 1;  // of dK: 2 for every other row of a wider tensor

  void prepare() { pipeliner_.prepare(tensors(), nullptr, scratch_.data(), stream_); }

  /// The bits of dQ, dK and dV, which begin as NaN.
  std::vector<HostTensor> gradients() {
    dq_ = HostTensor(kRows, 4, 8, plan_.options.storage);
    dk_ = HostTensor(kRows, 2 * static_cast<std::int32_t>(kv_rows_apart), 8, plan_.options.storage);
    dv_ = HostTensor(kRows, 2, 6, plan_.options.storage);
    const BackwardTensors own = tensors();
    pipeliner_.forward({own.q, own.k, own.v, own.o, own.lse}, 0.3, nullptr, stream_);
    attention_.filled_rows = attention_.converted_rows = 0;
    pipeliner_.backward(own, 0.3, nullptr, scratch_.data(), stream_);
    stream_.synchronize();
    return {dq_, dk_, dv_};
  }

 private:
  BackwardTensors tensors() {
    BackwardTensors own{q_.view(),   k_.view(),  v_.view(),  o_.view(), lse_.view(),
                        d_o_.view(), dq_.view(), dk_.view(), dv_.view()};
    own.dk.heads = 2;
    return own;
  }
  HostTensor tensor(std::int32_t heads, std::int32_t dim) const {
    return {kRows, heads, dim, plan_.options.storage};
  }

  PoolPlan plan_;
  WatchedAttention attention_;
  std::vector<std::unique_ptr<Transport>> endpoints_ = make_inproc_group(1, {});
  EventLog log_;
  WorkerContext context_{attention_, *endpoints_[0], log_, 0, nullptr, kLimits};
  Pipeliner pipeliner_{plan_, context_};
  HostTensor q_ = tensor(4, 8), k_ = tensor(2, 8), v_ = tensor(2, 6), o_ = tensor(4, 6);
  HostTensor lse_{kRows, 4, 1, accumulation_dtype(plan_.options.storage)};
  HostTensor d_o_ = tensor(4, 6), dq_ = tensor(4, 8), dk_ = tensor(2, 8), dv_ = tensor(2, 6);
  std::vector<std::byte> scratch_ = std::vector<std::byte>(at(pipeliner_.memory().scratch.bytes));
  TaskQueue stream_;  // last: destroyed, and so drained, before the memory
};

TEST(BackwardPass, WholeSamplesAreWrittenAndTheRestIsSummed) {
  OneWorker worker(DType::kBf16, true);
  worker.gradients();
  const WatchedAttention& attention = worker.attention();
  EXPECT_THAT(attention.run, ElementsAre(Gradients::kAdded, Gradients::kWritten));
  EXPECT_EQ(attention.filled_rows, 3 * (kRows - kWhole) + kPadding) << "sums, and padding of dQ";
  EXPECT_EQ(attention.converted_rows, 2 * (kRows - kWhole - kPadding) + 2 * (kRows - kWhole))
      << "dQ, shard by shard, dK and dV";
}

TEST(BackwardPass, WithoutABackendThatCanWriteAllIsSummed) {
  OneWorker worker(DType::kBf16, false);
  worker.gradients();
  const WatchedAttention& attention = worker.attention();
  EXPECT_THAT(attention.run, ElementsAre(Gradients::kAdded, Gradients::kAdded));
  EXPECT_EQ(attention.filled_rows, 3 * kRows + kPadding);
  EXPECT_EQ(attention.converted_rows, 2 * (kRows - kPadding) + 2 * kRows);
}

bool same(const HostTensor& a, const HostTensor& b) {
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    for (std::int32_t head = 0; head < a.heads(); ++head) {
      for (std::int32_t c = 0; c < a.dim(); ++c) {
        if (!(a.get(row, head, c) == b.get(row, head, c))) return false;
      }
    }
  }
  return true;
}

// On CPUs: the sums of a whole sample are the same, wherever they are kept until they are rounded.
TEST(BackwardPass, WrittenAndSummedGradientsAreTheSame) {
  for (const DType storage : {DType::kFp64, DType::kFp32, DType::kBf16}) {
    SCOPED_TRACE(dtype_name(storage));
    const auto written = OneWorker(storage, true).gradients();
    const auto summed = OneWorker(storage, false).gradients();
    for (std::size_t i = 0; i < written.size(); ++i) EXPECT_TRUE(same(written[i], summed[i])) << i;
  }
}

TEST(BackwardPass, PaddingIsZero) {
  for (const bool writes : {true, false}) {
    for (const HostTensor& gradient : OneWorker(DType::kFp32, writes).gradients()) {
      for (std::int64_t row = kRows - kPadding; row < kRows; ++row) {
        for (std::int32_t head = 0; head < gradient.heads(); ++head) {
          for (std::int32_t c = 0; c < gradient.dim(); ++c) {
            EXPECT_EQ(gradient.get(row, head, c), 0);
          }
        }
      }
    }
  }
}

TEST(BackwardPass, WhatIsPreparedIsWhatRuns) {
  for (const bool writes : {true, false}) {
    OneWorker worker(DType::kBf16, writes);
    worker.prepare();
    const std::vector<Gradients> prepared = worker.attention().prepared;
    EXPECT_EQ(worker.attention().run.size(), 0U);
    worker.gradients();
    EXPECT_EQ(worker.attention().prepared, prepared) << "once is enough";
    EXPECT_EQ(worker.attention().run, prepared);
  }
}

TEST(BackwardPass, GradientsThatLieOtherwiseArePreparedForIfTheyAreWritten) {
  for (const bool writes : {true, false}) {
    OneWorker worker(DType::kBf16, writes);
    worker.gradients();
    const std::size_t before = worker.attention().prepared.size();
    worker.kv_rows_apart = 2;
    worker.gradients();
    EXPECT_EQ(worker.attention().prepared.size(), writes ? 2 * before : before);
    EXPECT_EQ(worker.attention().prepared_dk_stride, writes ? 32 : 16) << "of dK, or of its sums";
  }
}

}  // namespace
}  // namespace libra
