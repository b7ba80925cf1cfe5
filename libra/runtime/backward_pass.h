// One backward pass of one worker, step by step in the order in which it is enqueued. See
// pipeliner.h.
//
// Gradients are accumulated in scratch and in the arena, in an order that depends on the plan
// alone: own work first, then what destinations send home, by destination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/runtime/chunk_calls.h"
#include "libra/runtime/pipeliner.h"

namespace libra {

class BackwardPass {
 public:
  /// Takes the next step number of the context. Keeps references to plan, program, routes and
  /// context.
  BackwardPass(const PoolPlan& plan, const WorkerProgram& program, const Routes& routes,
               WorkerContext& context, const BackwardTensors& own, double softmax_scale,
               std::byte* saved, std::byte* scratch, Stream& stream);

  void run();

 private:
  void clear_accumulators();
  void post_query_gradient_receives();
  void post_dispatch(std::int32_t chunk);
  void run_local();
  void run_chunk(std::int32_t chunk);
  void clear_key_gradients(std::int32_t kv_chunk);
  void compute(std::int32_t chunk);
  void post_query_gradients(std::int32_t chunk);
  void post_key_gradients(std::int32_t kv_chunk);
  void add_key_gradients(std::int32_t kv_chunk);
  void add_own_share(std::int32_t kv_chunk);

  // Where the gradients of a move's keys lie in the arena.
  struct GradientRows {
    const Region& dk;
    const Region& dv;
    std::int64_t row;
  };
  void add_rows(const GradientRows& from, const RowMove& move, std::int32_t kv_chunk);
  void convert_gradients();
  void finish();

  BackwardTensors tensors_of(const EntryGroup& group, std::int32_t chunk) const;
  void use_foreign_queries(BackwardTensors& tensors, std::int32_t chunk) const;
  void use_fetched_keys(BackwardTensors& tensors, std::int32_t kv_chunk) const;
  BackwardTensors own_accumulating() const;

  // A region as a tensor of one chunk's query heads or of one KV chunk's heads.
  TensorView query_tensor(std::byte* memory, const Region& region, std::int32_t chunk,
                          std::int32_t dim, DType dtype) const;
  TensorView key_tensor(std::byte* memory, const Region& region, std::int32_t kv_chunk,
                        std::int32_t dim, DType dtype) const;
  TensorView own_accumulator(const Region& region, std::int32_t heads, std::int32_t dim) const;

  Tag tag(Phase phase, std::int32_t chunk) const { return {step_, phase, chunk, 0}; }
  bool refetches() const { return plan_.options.backward == BackwardMode::kRefetch; }

  const PoolPlan& plan_;
  const WorkerProgram& program_;
  const Routes& routes_;
  WorkerContext& context_;
  BackwardTensors own_;  // dq, dk, dv: the caller's, in the storage dtype
  double scale_;
  std::byte* saved_;
  std::byte* scratch_;
  Stream& stream_;
  std::int32_t step_;
  std::byte* arena_;
  DType accumulated_;
  std::vector<Handle> dispatched_;     // by chunk
  std::vector<Handle> returned_;       // by chunk: dQ of foreign queries, leaving
  std::vector<Handle> arriving_;       // by chunk: dQ of own queries, coming home
  std::vector<Handle> key_gradients_;  // by KV chunk: dK and dV, both ways
};

}  // namespace libra
