// The pipeliner: runs one worker's share of a PoolPlan for one layer, exchange hidden under
// attention (the paper's section 4.4).
//
//   dispatch 0, 1             dispatch 2   dispatch 3   ...
//   local        chunk 0      chunk 1      chunk 2      ...      stream
//                             return 0     return 1     ...
//
// While chunk i is computed, Q, K and V of chunk i + 1 come in and O of chunk i - 1 goes home. Work
// that needs no exchange runs first and unchunked, under the first two dispatches. Everything is
// enqueued on the caller's stream; nothing here blocks the host.
//
//   WorkerContext context{backend, transport, log};
//   Pipeliner pipeliner(plan, context);                       // once per plan
//   transport.reserve_arena(pipeliner.memory().arena.bytes);  // grows only between passes
//   pipeliner.forward(tensors, scale, saved, stream);         // every layer, recompute included
//   pipeliner.backward(gradients, scale, saved, scratch, stream);
//
// Every worker of the pool must run the same passes in the same order. Own tensors are [rows,
// heads, dim] in the home layout's local order: Q, O and their gradients with q_heads / tp heads, K
// and V with kv_heads / tp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/plan/memory_plan.h"
#include "libra/runtime/event_log.h"
#include "libra/runtime/routes.h"
#include "libra/runtime/worker_program.h"
#include "libra/transport/transport.h"

namespace libra {

/// What all pipeliners of one worker share. One launching thread uses it.
struct WorkerContext {
  AttentionBackend& attention;
  Transport& transport;
  EventLog& log;
  std::int32_t next_step = 0;  ///< counts passes; equal on all workers
  /// Beside the passes' streams and of their kind: on it a relay passes keys on, and adds and sends
  /// gradients, as soon as these have come. Null, or a transport that cannot have posts wait: it
  /// does so on the pass's stream in between its own work. Idle when the pass's stream is past.
  Stream* relays = nullptr;
  /// Of samples whose gradients are written.
  WholeLimits whole_limits = {};
};

class Pipeliner {
 public:
  /// `plan` and `context` must outlive it. Throws ConfigError if the transport does not have the
  /// plan's workers.
  Pipeliner(const PoolPlan& plan, WorkerContext& context);
  Pipeliner(const Pipeliner&) = delete;  // its routes refer to its program
  Pipeliner& operator=(const Pipeliner&) = delete;

  /// Bytes and offsets of arena, saved and scratch memory, known before anything runs.
  const WorkerMemory& memory() const { return routes_.memory(); }

  /// Lets the attention backend build, load and allocate what the passes will need for tensors of
  /// these strides, which can take seconds. Optional: a pass does so itself if it must, but then
  /// its peers wait. Nothing is exchanged and no output written; `scratch` and the arena may be.
  void prepare(const BackwardTensors& own, std::byte* saved, std::byte* scratch, Stream& stream);

  /// Enqueues O and LSE of all own rows. Rows that belong to no sample get 0 and -inf. LSE of rows
  /// that were computed elsewhere is NaN unless the plan returns it: with keep, only their
  /// destination needs it. `saved`: memory().saved.bytes, kept by the caller until the pass's
  /// backward; null if 0.
  ///
  /// Throws ConfigError, before anything is enqueued, for tensors that are not the plan's (rows,
  /// heads, dims, dtype), for heads of a row that do not lie one after the other (head_stride =
  /// dim, which is what one strided copy can move), and for too little memory.
  ///
  /// Failure: if a peer fails, this or the stream throws a TransportError; O and LSE are then
  /// filled with NaN. Whatever is thrown: synchronise the stream before memory is freed.
  void forward(const ForwardTensors& own, double softmax_scale, std::byte* saved, Stream& stream);

  /// Enqueues dQ, dK, dV (overwritten, in the storage dtype) given O, LSE and dO of own rows. With
  /// keep, `saved` is what the forward pass of this layer left. `scratch`: memory().scratch.bytes,
  /// free again once the stream is past. Errors as in forward; then dQ, dK and dV are NaN. dK and
  /// dV may have any strides.
  void backward(const BackwardTensors& own, double softmax_scale, std::byte* saved,
                std::byte* scratch, Stream& stream);

  const WorkerProgram& program() const { return program_; }

 private:
  /// How the tensors of a pass's calls lie in memory: what a backend prepares for.
  using Strides = std::vector<std::int64_t>;

  template <typename Pass>
  static void prepare_once(Pass& pass, Strides strides, Strides& prepared);
  void check_forward(const ForwardTensors& own, const std::byte* saved) const;
  void check_gradients(const BackwardTensors& own) const;
  void check_arena() const;

  const PoolPlan& plan_;
  WorkerContext& context_;
  WorkerProgram program_;
  Routes routes_;
  Strides prepared_forward_, prepared_backward_;  // of the last pass
};

}  // namespace libra
