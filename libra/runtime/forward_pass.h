// One forward pass of one worker, step by step in the order in which it is enqueued. See
// pipeliner.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/runtime/chunk_calls.h"
#include "libra/runtime/pipeliner.h"

namespace libra {

class ForwardPass {
 public:
  /// Takes the next step number of the context. Keeps references to plan, program, routes and
  /// context.
  ForwardPass(const PoolPlan& plan, const WorkerProgram& program, const Routes& routes,
              WorkerContext& context, const ForwardTensors& own, double softmax_scale,
              std::byte* saved, Stream& stream);

  void run();

 private:
  void fill_rows_without_work();
  void post_return_receives();
  void post_dispatch(std::int32_t chunk);
  void run_local();
  void run_chunk(std::int32_t chunk);
  void save_inputs(std::int32_t chunk);
  void save_results(std::int32_t chunk);
  void compute(std::int32_t chunk);
  void post_return(std::int32_t chunk);
  void finish();

  ForwardTensors tensors_of(const EntryGroup& group, std::int32_t chunk) const;
  TensorView arena_tensor(Routes::ArenaRegion region, std::int32_t slot, std::int32_t heads,
                          std::int32_t dim, DType dtype) const;
  Tag tag(Phase phase, std::int32_t chunk) const { return {step_, phase, chunk, 0}; }
  bool keeps() const { return plan_.options.backward == BackwardMode::kKeep; }
  bool lse_goes_home() const { return plan_.options.lse_goes_home(); }

  const PoolPlan& plan_;
  const WorkerProgram& program_;
  const Routes& routes_;
  WorkerContext& context_;
  ForwardTensors own_;
  double scale_;
  std::byte* saved_;
  Stream& stream_;
  std::int32_t step_;
  std::byte* arena_;
  std::vector<Handle> dispatched_;  // by chunk
  std::vector<Handle> returned_;    // by chunk: this worker's sends
  std::vector<Handle> arriving_;    // by chunk: results coming home
};

}  // namespace libra
