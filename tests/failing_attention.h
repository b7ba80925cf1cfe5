// A backend whose n-th operation fails, to see what becomes of the pass and of the other workers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/task_queue.h"

namespace libra::testing {

enum class Fault : std::uint8_t {
  kNone,
  kOnTheHost,    ///< the call itself throws: the pass cannot be enqueued to its end
  kOnTheStream,  ///< the call returns, the work fails later
};

class FailingAttention final : public AttentionBackend {
 public:
  /// Operations count from 0.
  FailingAttention(Fault fault, std::int64_t operation) : fault_(fault), left_(operation) {}

  bool has_failed() const { return left_ < 0; }

  std::string_view name() const override { return "failing"; }
  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override {
    step(stream);
    inner_.forward(call, tensors, stream);
  }
  void backward(const AttentionCall& call, const BackwardTensors& tensors,
                Stream& stream) override {
    step(stream);
    inner_.backward(call, tensors, stream);
  }
  void copy(StridedView from, StridedView to, Stream& stream) override {
    step(stream);
    inner_.copy(from, to, stream);
  }
  void fill(const TensorView& tensor, double value, Stream& stream) override {
    step(stream);
    inner_.fill(tensor, value, stream);
  }
  void add(const TensorView& from, const TensorView& to, Stream& stream) override {
    step(stream);
    inner_.add(from, to, stream);
  }
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override {
    step(stream);
    inner_.convert(from, to, stream);
  }
  void poison_on_failure(const TensorView& tensor, Stream& stream) override {
    inner_.poison_on_failure(tensor, stream);
  }

 private:
  void step(Stream& stream) {
    if (fault_ == Fault::kNone || left_-- != 0) return;
    if (fault_ == Fault::kOnTheHost) throw std::runtime_error("injected fault");
    dynamic_cast<TaskQueue&>(stream).enqueue([] { throw std::runtime_error("injected fault"); });
  }

  ReferenceAttention inner_;
  Fault fault_;
  std::int64_t left_;
};

}  // namespace libra::testing
