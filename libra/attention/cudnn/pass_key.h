// What a forward or backward pass over one call depends on, but for where its tensors lie: the key
// under which prepared passes are kept. Layers that share a plan, and the chunks of one list of
// entries, have equal keys.
#pragma once

#include <cstddef>

#include "libra/attention/attention.h"
#include "libra/attention/cudnn/sdpa_graph.h"

namespace libra::cudnn {

struct TensorLayout {
  DType dtype = DType::kBf16;
  std::int32_t dim = 0;
  Strides strides;
  /// Elements between where cuDNN is told that the tensor begins and its first one. It is told a
  /// multiple of 256 bytes, as tensors usually begin at, and not any head's place; of LSE, whose
  /// heads are short, one of 16, so that chunks have equal layouts.
  std::int64_t lead = 0;

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

struct PassKey {
  Pass pass = Pass::kForward;
  AttentionCall call;  ///< its first heads are 0, and not shifted; its scale is 1
  PerPort<TensorLayout> layouts;

  friend bool operator==(const PassKey&, const PassKey&) = default;
};

/// Looks at some of the entries only.
struct PassKeyHash {
  std::size_t operator()(const PassKey& key) const;
};

/// A call's tensors by port, each from the first head on that the call uses.
using PassTensors = PerPort<TensorView>;

PassTensors tensors_of(const AttentionCall& call, const ForwardTensors& tensors);
PassTensors tensors_of(const AttentionCall& call, const BackwardTensors& tensors);

PassKey key_of(Pass pass, const AttentionCall& call, const PassTensors& tensors);

}  // namespace libra::cudnn
