// The CPU backend: attention on a TaskQueue (libra/base/task_queue.h), for machines without a GPU,
// and the yardstick for backends that are faster.
//
//   ReferenceAttention attention; TaskQueue queue;
//   attention.forward(call, tensors, queue);   // checks the arguments, enqueues, returns
//   queue.synchronize();                       // O and LSE are there
//
// Storage fp64, fp32 or bf16; sums in fp64 for fp64, else in fp32. Any head dimension, d_k != d_v
// too, any row and head strides. O and LSE of a query depend on that query's keys only, not on the
// other entries of a call. Same call, same machine: same bits. One thread, widest vectors that the
// machine has.
//
// What it is not: parallel. Workers are parallel, each with a queue of its own.
#pragma once

#include <string_view>

#include "libra/attention/attention.h"

namespace libra {

/// Stateless: one object serves any number of queues and threads. Every function throws ConfigError
/// at once if the stream is no TaskQueue or an argument is wrong; nothing has been enqueued then.
class ReferenceAttention final : public AttentionBackend {
 public:
  std::string_view name() const override { return "reference"; }
  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override;
  bool can_write(const AttentionCall& /*call*/, const BackwardTensors& /*tensors*/) override {
    return true;
  }
  void backward(const AttentionCall& call, const BackwardTensors& tensors, Stream& stream) override;
  void copy(StridedView from, StridedView to, Stream& stream) override;
  void fill(const TensorView& tensor, double value, Stream& stream) override;
  void add(const TensorView& from, const TensorView& to, Stream& stream) override;
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override;
  void poison_on_failure(const TensorView& tensor, Stream& stream) override;
};

}  // namespace libra
