#include "libra/cli/dense_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "libra/base/index.h"
#include "libra/base/task_queue.h"

namespace libra::cli {
namespace {

constexpr double kFp64Tolerance = 1e-10;
constexpr double kLowPrecisionFactor = 2;

using Member = HostTensor LayerOutputs::*;
constexpr std::array<Member, 5> kOutputs = {&LayerOutputs::o, &LayerOutputs::lse, &LayerOutputs::dq,
                                            &LayerOutputs::dk, &LayerOutputs::dv};

HostTensor converted(HostTensor from, DType dtype, AttentionBackend& backend) {
  HostTensor to(from.rows(), from.heads(), from.dim(), dtype);
  TaskQueue stream;
  backend.convert(from.view(), to.view(), stream);
  stream.synchronize();
  return to;
}

// One sequence, one entry per sample.
class PlainAttention {
 public:
  PlainAttention(AttentionBackend& backend, const PackedSequence& sequence,
                 const SequenceTensors& inputs, DType dtype, double softmax_scale)
      : backend_(backend),
        dtype_(dtype),
        q_(converted(inputs.q, dtype, backend)),
        k_(converted(inputs.k, dtype, backend)),
        v_(converted(inputs.v, dtype, backend)),
        d_o_(converted(inputs.d_o, dtype, backend)),
        o_(q_.rows(), q_.heads(), v_.dim(), dtype),
        lse_(q_.rows(), q_.heads(), 1, accumulation_dtype(dtype)),
        dq_(q_.rows(), q_.heads(), q_.dim(), accumulation_dtype(dtype)),
        dk_(k_.rows(), k_.heads(), k_.dim(), accumulation_dtype(dtype)),
        dv_(v_.rows(), v_.heads(), v_.dim(), accumulation_dtype(dtype)) {
    call_.q_heads = q_.heads();
    call_.kv_heads = k_.heads();
    call_.softmax_scale = softmax_scale;
    std::int64_t row = 0;
    for (const std::int64_t tokens : sequence.sample_tokens) {
      call_.entries.push_back({row, tokens, row, tokens});
      row += tokens;
    }
  }

  void start() {
    backend_.fill(o_.view(), 0, stream_);
    backend_.fill(lse_.view(), -std::numeric_limits<double>::infinity(), stream_);
    for (HostTensor* gradient : {&dq_, &dk_, &dv_}) backend_.fill(gradient->view(), 0, stream_);
    backend_.forward(call_, {q_.view(), k_.view(), v_.view(), o_.view(), lse_.view()}, stream_);
    backend_.backward(call_,
                      {q_.view(), k_.view(), v_.view(), o_.view(), lse_.view(), d_o_.view(),
                       dq_.view(), dk_.view(), dv_.view()},
                      stream_);
  }

  LayerOutputs finish() {
    stream_.synchronize();
    return {o_, lse_, converted(dq_, dtype_, backend_), converted(dk_, dtype_, backend_),
            converted(dv_, dtype_, backend_)};
  }

 private:
  AttentionBackend& backend_;
  DType dtype_;
  HostTensor q_, k_, v_, d_o_, o_, lse_, dq_, dk_, dv_;
  AttentionCall call_;
  TaskQueue stream_;  // last: its thread uses what is above
};

std::vector<LayerOutputs> plain_attention(AttentionBackend& backend,
                                          const std::vector<PackedSequence>& sequences,
                                          const std::vector<SequenceTensors>& inputs, DType dtype,
                                          double softmax_scale) {
  std::vector<std::unique_ptr<PlainAttention>> running;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    running.push_back(
        std::make_unique<PlainAttention>(backend, sequences[i], inputs[i], dtype, softmax_scale));
    running.back()->start();
  }
  std::vector<LayerOutputs> outputs;
  outputs.reserve(running.size());
  for (const auto& one : running) outputs.push_back(one->finish());
  return outputs;
}

double difference(double expected, double found) {
  if (expected == found) return 0;  // infinities too
  const double error = std::abs(expected - found);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// `expected` is dense fp64.
double largest_difference(HostTensor& expected, const HostTensor& found,
                          AttentionBackend& backend) {
  HostTensor exactly = converted(found, DType::kFp64, backend);
  const auto* const a = static_cast<const double*>(expected.view().data);
  const auto* const b = static_cast<const double*>(exactly.view().data);
  const std::int64_t elements = expected.rows() * expected.heads() * expected.dim();
  double largest = 0;
  for (std::int64_t i = 0; i < elements; ++i) largest = std::max(largest, difference(a[i], b[i]));
  return largest;
}

double largest_finite(const std::vector<LayerOutputs>& outputs, Member member) {
  double largest = 0;
  for (const LayerOutputs& sequence : outputs) {
    HostTensor tensor = sequence.*member;
    const auto* const values = static_cast<const double*>(tensor.view().data);
    const std::int64_t elements = tensor.rows() * tensor.heads() * tensor.dim();
    for (std::int64_t i = 0; i < elements; ++i) {
      if (std::isfinite(values[i])) largest = std::max(largest, std::abs(values[i]));
    }
  }
  return largest;
}

// The distance from `value` to the next larger number of this format.
double last_place(double value, DType dtype) {
  if (value == 0) return 0;
  const int digits = dtype == DType::kBf16 ? 8 : dtype == DType::kFp16 ? 11 : 24;
  return std::ldexp(1.0, std::ilogb(value) - (digits - 1));
}

}  // namespace

DenseCheck::DenseCheck(AttentionBackend& backend, const std::vector<PackedSequence>& sequences,
                       const std::vector<SequenceTensors>& inputs, double softmax_scale)
    : backend_(backend),
      exact_(plain_attention(backend, sequences, inputs, DType::kFp64, softmax_scale)) {
  const DType stored = inputs.front().q.dtype();
  if (stored == DType::kFp64) {
    allowed_.largest.fill(kFp64Tolerance);
    return;
  }
  allowed_ = errors(plain_attention(backend, sequences, inputs, stored, softmax_scale));
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    const DType format = kOutputs[i] == &LayerOutputs::lse ? accumulation_dtype(stored) : stored;
    allowed_.largest[i] = std::max(kLowPrecisionFactor * allowed_.largest[i],
                                   last_place(largest_finite(exact_, kOutputs[i]), format));
  }
}

OutputErrors DenseCheck::errors(const std::vector<LayerOutputs>& outputs) {
  OutputErrors errors;
  for (std::size_t i = 0; i < exact_.size(); ++i) {
    for (std::size_t output = 0; output < kOutputs.size(); ++output) {
      const Member member = kOutputs[output];
      double& largest = errors.largest[output];
      largest =
          std::max(largest, largest_difference(exact_[i].*member, outputs[i].*member, backend_));
    }
  }
  return errors;
}

bool within(const OutputErrors& errors, const OutputErrors& allowed) {
  for (std::size_t i = 0; i < errors.largest.size(); ++i) {
    if (!(errors.largest[i] <= allowed.largest[i])) return false;
  }
  return true;
}

}  // namespace libra::cli
