// The tensors of one chunk as they lie in an arena, in saved memory or in scratch: each region of a
// memory plan with its heads, dimension and dtype.
//
//   const ChunkTensors chunk_tensors(plan);
//   chunk_tensors.use(group, chunk, {arena, memory.arena}, tensors);   // in place of the own ones
#pragma once

#include <cstddef>
#include <cstdint>

#include "libra/attention/attention.h"
#include "libra/plan/memory_plan.h"
#include "libra/runtime/worker_program.h"

namespace libra {

/// A layout and where its memory begins.
template <typename Layout>
struct Laid {
  std::byte* memory;
  const Layout& layout;
};

class ChunkTensors {
 public:
  explicit ChunkTensors(const PoolPlan& plan)
      : heads_(plan.heads()),
        shape_(plan.options.shape),
        stored_(plan.options.storage),
        accumulated_(accumulation_dtype(plan.options.storage)) {}

  /// Foreign queries, a chunk's heads: Q and dQ have d_qk components, O and dO d_v.
  TensorView q(std::byte* memory, const Region& region, std::int32_t chunk) const;
  TensorView o(std::byte* memory, const Region& region, std::int32_t chunk) const;
  TensorView lse(std::byte* memory, const Region& region, std::int32_t chunk) const;
  TensorView dq_sum(std::byte* memory, const Region& region) const;

  /// Keys and values, a KV chunk's heads.
  TensorView k(std::byte* memory, const Region& region, std::int32_t kv_chunk) const;
  TensorView v(std::byte* memory, const Region& region, std::int32_t kv_chunk) const;
  TensorView dk_sum(std::byte* memory, const Region& region, std::int32_t kv_chunk) const;
  TensorView dv_sum(std::byte* memory, const Region& region, std::int32_t kv_chunk) const;

  /// Puts the chunk's Q, O, LSE, K and V in the place of the worker's own where the group says so.
  template <typename Layout, typename Tensors>
  void use(const EntryGroup& group, std::int32_t chunk, const Laid<Layout>& from,
           Tensors& tensors) const {
    if (group.q_in_arena) {
      tensors.q = q(from.memory, from.layout.q, chunk);
      tensors.o = o(from.memory, from.layout.o, chunk);
      tensors.lse = lse(from.memory, from.layout.lse, chunk);
    }
    if (group.kv_in_arena) {
      const std::int32_t kv_chunk = heads_.kv_chunk_of(chunk);
      tensors.k = k(from.memory, from.layout.k, kv_chunk);
      tensors.v = v(from.memory, from.layout.v, kv_chunk);
    }
  }

 private:
  HeadSplit heads_;
  AttentionShape shape_;
  DType stored_;
  DType accumulated_;
};

}  // namespace libra
