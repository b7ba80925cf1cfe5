// Attention on NVIDIA GPUs: cuDNN's fused kernels, through cudnn-frontend's graphs.
//
//   CudnnAttention attention(0);                   // of device 0
//   CudaStream stream(0);
//   attention.forward(call, tensors, stream);      // checks, enqueues, returns
//   stream.synchronize();
//
// Storage bf16 or fp16, head dimensions 64 to 256 in steps of 16, d_k != d_v where cuDNN has a
// kernel for it; Hopper or newer. Every row and head of a tensor must begin on 16 bytes. For
// anything else: ConfigError.
//
// Speed. A call becomes one cuDNN call per mask, with the longest entries first. What a cuDNN call
// is built for (its graph) takes 40 ms to 1 s, so shapes are rounded up to few buckets and graphs
// are kept for all backends of the process: one per bucket, head counts, dimensions and strides.
// Once those have been met, a call builds nothing and allocates nothing. What the host decides
// about a call is kept, too, so that another layer's call with the same entries, heads and strides
// is only enqueued: forward some 20 to 40 us.
//
// Gradients. cuDNN computes them in the storage type for each entry; they are added to the caller's
// fp32 in an order that depends on the call alone. Within an entry of more keys than fit one tile,
// cuDNN itself adds dQ in the order in which tiles finish, so the last bits can differ from run to
// run, unless CudnnOptions::deterministic is set. Entries that continue each other (a block's
// square and rectangle, neighbouring blocks of a sample) are merged, and bottom-right causal ones
// split into a square and a rectangle, which is faster.
//
// Gradients that are written (entries that share no keys, AttentionCall::gradients) need no sums:
// cuDNN leaves them where the caller wants them, if the tensors are dense in the call's heads and
// the entries have one first head; otherwise they are copied once.
//
// Another fused attention (a FlashAttention package, say) takes its place behind the same
// interface: see docs/decisions/0004-cudnn-frontend.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "libra/attention/attention.h"

namespace libra {

struct CudnnOptions {
  /// Bounds the device memory that backward works in; larger work is cut into several cuDNN calls.
  /// A token takes 70 KB at 32:8 heads of 128, a quarter of that at 8:2. Backward reserves all of
  /// it, or a sixteenth for small calls.
  std::int64_t max_scratch_bytes = std::int64_t{2} << 30;

  /// The same bits every time. Slower, and in need of scratch that grows with queries x keys.
  bool deterministic = false;
};

/// One device. Calls may come on any of its streams; they share scratch memory and so run one after
/// the other. Thread rules: one thread at a time. Everything throws ConfigError at once if an
/// argument is wrong, nothing has been enqueued then; DeviceError if the GPU refuses.
class CudnnAttention final : public AttentionBackend {
 public:
  explicit CudnnAttention(std::int32_t device, const CudnnOptions& options = {});
  /// Waits for the last call.
  ~CudnnAttention() override;

  std::string_view name() const override { return "cudnn"; }
  void prepare(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override;
  void prepare(const AttentionCall& call, const BackwardTensors& tensors, Stream& stream) override;
  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override;
  bool can_write(const AttentionCall& call, const BackwardTensors& tensors) override;
  void backward(const AttentionCall& call, const BackwardTensors& tensors, Stream& stream) override;
  void copy(StridedView from, StridedView to, Stream& stream) override;
  void fill(const TensorView& tensor, double value, Stream& stream) override;
  void add(const TensorView& from, const TensorView& to, Stream& stream) override;
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override;
  void poison_on_failure(const TensorView& tensor, Stream& stream) override;

  /// Builds the graphs of every bucket that calls like this one can need: of its heads, and of the
  /// tensors' dimensions and strides, with any number of entries, each of at most `max_rows`
  /// queries and keys. Nothing is read or written. About 60 ms a graph: some 20 forward and 80
  /// backward up to 32K rows. Not for the backward of the deterministic mode, whose buckets are
  /// too many.
  void warm_up(const AttentionCall& call, const ForwardTensors& tensors, std::int64_t max_rows);
  void warm_up(const AttentionCall& call, const BackwardTensors& tensors, std::int64_t max_rows);

  /// Graphs built on this device since the process began, by all backends.
  std::int64_t graph_builds() const;
  /// Calls prepared by this backend: those that were like no earlier one.
  std::int64_t preparations() const;
  /// Times that the scratch memory has grown.
  std::int64_t scratch_allocations() const;
  std::int64_t scratch_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace libra
