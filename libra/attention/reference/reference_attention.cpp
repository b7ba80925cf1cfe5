#include "libra/attention/reference/reference_attention.h"

#include <limits>

#include "libra/attention/argument_checks.h"
#include "libra/attention/reference/elementwise.h"
#include "libra/attention/reference/kernel_backward.h"
#include "libra/attention/reference/kernel_forward.h"
#include "libra/base/error.h"
#include "libra/base/task_queue.h"

namespace libra {
namespace {

TaskQueue& task_queue(Stream& stream) {
  if (auto* const queue = dynamic_cast<TaskQueue*>(&stream)) return *queue;
  throw ConfigError("the CPU attention backend was given a stream of another kind: use TaskQueue");
}

const SupportedDTypes& supported() {
  static const SupportedDTypes result = {"the CPU backend",
                                         {DType::kFp64, DType::kFp32, DType::kBf16}};
  return result;
}

void check_formats(const TensorView& from, const TensorView& to) {
  check_dtype("the source", from.dtype, supported());
  check_dtype("the destination", to.dtype, supported());
}

}  // namespace

void ReferenceAttention::forward(const AttentionCall& call, const ForwardTensors& tensors,
                                 Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_forward(call, tensors, supported());
  queue.enqueue([call, tensors] { reference::run_forward(call, tensors); });
}

void ReferenceAttention::backward(const AttentionCall& call, const BackwardTensors& tensors,
                                  Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_backward(call, tensors, supported());
  queue.enqueue([call, tensors] { reference::run_backward(call, tensors); });
}

void ReferenceAttention::copy(StridedView from, StridedView to, Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_copy(from, to);
  queue.enqueue([from, to] { reference::run_copy(from, to); });
}

void ReferenceAttention::fill(const TensorView& tensor, double value, Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_dtype("the tensor", tensor.dtype, supported());
  queue.enqueue([tensor, value] { reference::run_fill(tensor, value); });
}

void ReferenceAttention::add(const TensorView& from, const TensorView& to, Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_formats(from, to);
  check_add(from, to);
  queue.enqueue([from, to] { reference::run_add(from, to); });
}

void ReferenceAttention::convert(const TensorView& from, const TensorView& to, Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_formats(from, to);
  check_same_shape(from, to);
  queue.enqueue([from, to] { reference::run_convert(from, to); });
}

void ReferenceAttention::poison_on_failure(const TensorView& tensor, Stream& stream) {
  TaskQueue& queue = task_queue(stream);
  check_dtype("the tensor", tensor.dtype, supported());
  queue.enqueue_on_failure(
      [tensor] { reference::run_fill(tensor, std::numeric_limits<double>::quiet_NaN()); });
}

}  // namespace libra
