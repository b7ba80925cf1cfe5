// A CPU backend that is disturbed before each of its operations: made to fail, or to be late.
//
//   DisturbedAttention attention([](Stream& stream) { ... });   // may throw, or enqueue
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/task_queue.h"

namespace libra::testing {

/// Called before each operation but poison_on_failure.
using Disturbance = std::function<void(TaskQueue&)>;

class DisturbedAttention final : public AttentionBackend {
 public:
  explicit DisturbedAttention(Disturbance disturb) : disturb_(std::move(disturb)) {}

  std::string_view name() const override { return "disturbed"; }
  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override {
    disturb(stream);
    inner_.forward(call, tensors, stream);
  }
  bool can_write(const AttentionCall& call, const BackwardTensors& tensors) override {
    return inner_.can_write(call, tensors);
  }
  void backward(const AttentionCall& call, const BackwardTensors& tensors,
                Stream& stream) override {
    disturb(stream);
    inner_.backward(call, tensors, stream);
  }
  void copy(StridedView from, StridedView to, Stream& stream) override {
    disturb(stream);
    inner_.copy(from, to, stream);
  }
  void fill(const TensorView& tensor, double value, Stream& stream) override {
    disturb(stream);
    inner_.fill(tensor, value, stream);
  }
  void add(const TensorView& from, const TensorView& to, Stream& stream) override {
    disturb(stream);
    inner_.add(from, to, stream);
  }
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override {
    disturb(stream);
    inner_.convert(from, to, stream);
  }
  void poison_on_failure(const TensorView& tensor, Stream& stream) override {
    inner_.poison_on_failure(tensor, stream);
  }

 private:
  void disturb(Stream& stream) { disturb_(dynamic_cast<TaskQueue&>(stream)); }

  ReferenceAttention inner_;
  Disturbance disturb_;
};

enum class Fault : std::uint8_t {
  kNone,
  kOnTheHost,    ///< the call itself throws: the pass cannot be enqueued to its end
  kOnTheStream,  ///< the call returns, the work fails later
};

/// Fails once, at the n-th operation, counted from 0.
class FaultAt {
 public:
  FaultAt(Fault fault, std::int64_t operation) : fault_(fault), left_(operation) {}

  void operator()(TaskQueue& stream) {
    if (fault_ == Fault::kNone || left_-- != 0) return;
    if (fault_ == Fault::kOnTheHost) throw std::runtime_error("injected fault");
    stream.enqueue([] { throw std::runtime_error("injected fault"); });
  }

  bool reached() const { return left_ < 0; }

 private:
  Fault fault_;
  std::int64_t left_;
};

/// Every operation begins later than the others' by this.
inline Disturbance late_by(std::chrono::microseconds delay) {
  return [delay](TaskQueue& stream) {
    stream.enqueue([delay] { std::this_thread::sleep_for(delay); });
  };
}

}  // namespace libra::testing
