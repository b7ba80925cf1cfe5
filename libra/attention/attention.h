// Variable-length attention over a list of entries: the interface that every backend implements.
//
// One call works on tensors with one base and one row stride each, and on entries that pick rows
// and heads in them. Rows are tokens; a tensor is [rows, heads, dim] with a unit last stride:
//
//          heads
//        +--------+              An entry attends `queries` rows x call.q_heads heads (from q_head)
//   rows |  ####  |  <- entry    to `keys` rows x call.kv_heads heads (from kv_head). Its query
//        |  ####  |              head i uses its KV head i * kv_heads / q_heads (GQA).
//        +--------+
//
// Masks, with n queries and k keys:
//   top-left causal      query i sees keys [0, i]              (n = k: the usual causal square)
//   bottom-right causal  query i sees keys [0, i + k - n]      (n <= k: the last n of k tokens)
//   full                 every query sees every key
//
// What it is not: it knows nothing of samples, tiles, plans or peers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libra/base/dtype.h"
#include "libra/base/stream.h"
#include "libra/base/strided_view.h"

namespace libra {

enum class Mask : std::uint8_t { kTopLeftCausal, kBottomRightCausal, kFull };

struct Entry {
  std::int64_t q_row = 0;    ///< first query row, in Q, O, LSE, dO and dQ alike
  std::int64_t queries = 0;  ///< may be 0
  std::int64_t kv_row = 0;   ///< first key row, in K, V, dK and dV alike; entries may share keys
  std::int64_t keys = 0;     ///< may be 0: then O = 0, LSE = -inf and all gradients are zero
  std::int32_t q_head = 0;   ///< first query head
  std::int32_t kv_head = 0;  ///< first KV head
  Mask mask = Mask::kBottomRightCausal;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// What backward() does with the gradients of a call.
enum class Gradients : std::uint8_t {
  kAdded,    ///< adds them to what is there: entries may share keys
  kWritten,  ///< overwrites what is there: no two entries may share a key of a KV head
};

/// A [rows, heads, dim] tensor, not owned. Strides are in elements, 64-bit; the last one is 1.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kFp64;
  std::int64_t rows = 0;
  std::int32_t heads = 0;
  std::int32_t dim = 0;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;
};

/// What forward and backward share. `entries` must not overlap in (query row, query head).
struct AttentionCall {
  std::vector<Entry> entries;
  std::int32_t q_heads = 1;   ///< query heads of every entry
  std::int32_t kv_heads = 1;  ///< KV heads of every entry; divides q_heads
  /// Added to every entry's q_head and kv_head: chunk m of a list of entries is the same list,
  /// shifted.
  std::int32_t q_head_shift = 0;
  std::int32_t kv_head_shift = 0;
  double softmax_scale = 1.0;
  Gradients gradients = Gradients::kAdded;  ///< of backward

  friend bool operator==(const AttentionCall&, const AttentionCall&) = default;
};

struct ForwardTensors {
  TensorView q;    ///< dim d_qk
  TensorView k;    ///< dim d_qk
  TensorView v;    ///< dim d_v
  TensorView o;    ///< dim d_v; written
  TensorView lse;  ///< dim 1, accumulation_dtype(q.dtype); natural logarithm of the scaled row
                   ///< sums; written
};

struct BackwardTensors {
  TensorView q, k, v;
  TensorView o, lse, d_o;  ///< of the complete attention of each query, over all its keys
  /// Added to: accumulation_dtype(q.dtype). Written: q.dtype.
  TensorView dq, dk, dv;
};

/// A gradient is additive over key ranges given the final O and LSE: an entry over keys [0, e) may
/// be given as any entries that together cover the same (query, key) pairs once.
class AttentionBackend {
 public:
  virtual ~AttentionBackend() = default;

  virtual std::string_view name() const = 0;

  /// Does all that a first call of this kind may have to stop the device or the host for, so that
  /// forward() with the same entries, heads and strides only enqueues. For callers that let streams
  /// wait for peers: a host that stops then may stop for good. Writes nothing.
  virtual void prepare(const AttentionCall& /*call*/, const ForwardTensors& /*tensors*/,
                       Stream& /*stream*/) {}
  /// The same for backward().
  virtual void prepare(const AttentionCall& /*call*/, const BackwardTensors& /*tensors*/,
                       Stream& /*stream*/) {}

  /// Enqueues O and LSE of every entry; rows and heads that no entry names are left as they are.
  /// The call and the views are copied; the memory must live until the stream has passed this
  /// point. Throws ConfigError for a dtype, head dimension or stride that the backend does not
  /// support.
  virtual void forward(const AttentionCall& call, const ForwardTensors& tensors,
                       Stream& stream) = 0;

  /// Whether backward() takes this call with Gradients::kWritten. Entries that cover the complete
  /// attention of their samples need no sums then: up to a quarter of the time of short ones.
  virtual bool can_write(const AttentionCall& /*call*/, const BackwardTensors& /*tensors*/) {
    return false;
  }

  /// Enqueues dq += ..., dk += ..., dv += ... of every entry, in an order that depends on the call
  /// alone, so that the same call gives the same bits; or dq = ... and so on, if the call says so.
  /// Rows and heads that no entry names are left as they are.
  virtual void backward(const AttentionCall& call, const BackwardTensors& tensors,
                        Stream& stream) = 0;

  // What the runtime needs besides attention, in stream order like the rest.

  /// Copies a view onto one of the same shape. They must not overlap.
  virtual void copy(StridedView from, StridedView to, Stream& stream) = 0;

  /// Sets every element of the view to `value`.
  virtual void fill(const TensorView& tensor, double value, Stream& stream) = 0;

  /// to += from, element by element; both of the same shape and an accumulation dtype.
  virtual void add(const TensorView& from, const TensorView& to, Stream& stream) = 0;

  /// to = from, rounded to `to`'s dtype; both of the same shape.
  virtual void convert(const TensorView& from, const TensorView& to, Stream& stream) = 0;

  /// If the stream fails before this point: fills the view with NaN instead of leaving half a
  /// result.
  virtual void poison_on_failure(const TensorView& tensor, Stream& stream) = 0;
};

}  // namespace libra
