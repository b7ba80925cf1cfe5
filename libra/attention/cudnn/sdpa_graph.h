// One cuDNN graph of fused attention over ragged tensors, built once and run any number of times.
// cudnn-frontend's headers take half a minute to compile: only sdpa_graph.cpp includes them.
//
// A graph has room for `entries` entries of up to max_queries x max_keys each. Where an entry's
// rows begin is given at run time, in elements from a tensor's first one, so entries may lie
// anywhere, in any order, share keys, and start at any head. Exceptions, found the hard way: cuDNN
// adds dQ up in its workspace at the offsets of Q, so both must have the same; with GQA it keeps dK
// and dV of every query head at theirs. So these count from the tensor's first row, up to the
// totals. Every tensor's address is a multiple of 16 bytes.
//
// The NOLINTs: clang-tidy 14 takes a defaulted <=> for a null pointer.
#pragma once

#include <cudnn.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "libra/attention/attention.h"

namespace libra::cudnn {

enum class Pass : std::uint8_t { kForward, kBackward };

/// The tensors of a graph. Forward has those up to kLse; backward has all, kO and kLse as inputs.
enum class Port : std::uint8_t { kQ, kK, kV, kO, kLse, kDo, kDq, kDk, kDv };
inline constexpr std::size_t kNumPorts = 9;

template <typename T>
class PerPort {
 public:
  T& operator[](Port port) { return values_[static_cast<std::size_t>(port)]; }
  const T& operator[](Port port) const { return values_[static_cast<std::size_t>(port)]; }
  friend auto operator<=>(const PerPort&, const PerPort&) = default;  // NOLINT

 private:
  std::array<T, kNumPorts> values_{};
};

/// Distances in elements.
struct Strides {
  std::int64_t row = 0;
  std::int64_t head = 0;

  friend auto operator<=>(const Strides&, const Strides&) = default;  // NOLINT
};

/// All that a graph depends on: its key in a cache.
struct SdpaShape {
  Pass pass = Pass::kForward;
  Mask mask = Mask::kFull;
  bool deterministic = false;  ///< backward only
  std::int32_t q_heads = 1, kv_heads = 1;
  std::int32_t qk_dim = 0, v_dim = 0;
  std::int64_t entries = 0;
  std::int64_t max_queries = 0, max_keys = 0;
  std::int64_t total_queries = 0, total_keys = 0;  ///< backward only: they bound the workspace
  PerPort<Strides> strides;
  PerPort<DType> dtypes;  ///< Q's is the storage type

  friend auto operator<=>(const SdpaShape&, const SdpaShape&) = default;  // NOLINT
};

/// Device memory. Offsets are int64[entries + 1], in elements; lengths are int32[entries].
struct SdpaMemory {
  PerPort<const void*> tensors;
  PerPort<const void*> offsets;
  const void* queries = nullptr;
  const void* keys = nullptr;
  float scale = 1;
};

class SdpaGraph {
 public:
  /// Takes 40 ms to 1 s. Throws ConfigError if cuDNN has no kernel for the shape.
  SdpaGraph(const SdpaShape& shape, cudnnHandle_t handle);
  ~SdpaGraph();
  SdpaGraph(const SdpaGraph&) = delete;
  SdpaGraph& operator=(const SdpaGraph&) = delete;

  std::int64_t workspace_bytes() const;

  /// Enqueues on the handle's stream. Not thread-safe.
  void run(cudnnHandle_t handle, const SdpaMemory& memory, void* workspace);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace libra::cudnn
