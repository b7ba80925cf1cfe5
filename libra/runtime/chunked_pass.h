// The skeleton of a pass of one worker, forward or backward: which chunk is sent, computed and
// returned when. What is computed is the passes' part (forward_pass.h, backward_pass.h); the
// picture is in pipeliner.h.
//
// Two roles. As a home, a worker sends its own Q, K and V and receives what others computed for
// it; that hangs on nothing that it computes itself, so all of it is posted when the pass begins,
// and guests elsewhere are never held up by this worker's own work. As a guest of other homes, it
// receives, computes and sends back chunk by chunk.
//
// Where a transport cannot have posts wait for long (Transport::posts_ahead), the home's part of a
// chunk is posted with the guest's, in the same order on every worker, and of each phase the sends
// before the receives and before anything that waits. Such a pass ends even where all of a worker's
// work, receives among it, runs in one in-order queue.
//
// Relays. Where keys are passed on within nodes, those of a KV chunk are dispatched two KV chunks
// before they are used, apart from the queries, so that both rounds run under computation:
//
//   keys 2            keys 3            keys 4
//   pass on 1         pass on 2         pass on 3
//   compute 0         compute 1         compute 2          (KV chunks)
//
// Keys and their gradients have a third slot for that. A relay passes keys on, adds gradients and
// sends their sums on a stream of its own (WorkerContext::relays), so that its node never waits for
// its computation; without one, in order on the pass's stream: the first keys before the local
// work, which waits for them on a relay, others before the computation of the KV chunk before, sums
// after that of the next. Tags tell the rounds apart.
//
// Slots. Arenas have two slots per tensor, so the first two dispatches run under the local work.
// The dispatch of chunk i + 1 goes where chunk i - 1 was, whose computation is enqueued already.
// The results of chunk i go where those of chunk i - 2 were, which must have left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libra/runtime/chunk_calls.h"
#include "libra/runtime/chunk_tensors.h"
#include "libra/runtime/pipeliner.h"

namespace libra {

/// What a pass works with; all of it outlives the pass. The memory lives until the stream is past.
struct PassArguments {
  const PoolPlan& plan;
  const WorkerProgram& program;
  const Routes& routes;
  WorkerContext& context;
  double softmax_scale;
  std::byte* saved;
  Stream& stream;
};

class ChunkedPass {
 public:
  virtual ~ChunkedPass() = default;
  ChunkedPass(const ChunkedPass&) = delete;
  ChunkedPass& operator=(const ChunkedPass&) = delete;

  /// Lets the attention backend do what may stop the host, so that run() does not.
  void prepare() { get_ready(); }

  /// Enqueues the pass. If the stream fails, its outputs are filled with NaN. If this throws, they
  /// are too, and the transport has been aborted, since the other workers can't go on either.
  void run();

 protected:
  /// An own tensor, and the region of arenas where its rows are while they are at another worker.
  struct Leg {
    TensorView own;
    Routes::ArenaRegion region = nullptr;
  };
  /// What is exchanged chunk by chunk.
  struct Legs {
    Phase dispatch;
    Phase back;
    std::vector<Leg> queries;  ///< go out
    std::vector<Leg> keys;     ///< go out, with the first chunk that uses them
    std::vector<Leg> results;  ///< come home
  };

  ChunkedPass(const PassArguments& arguments, Legs legs);

  virtual std::vector<TensorView> outputs() const = 0;
  virtual void begin() = 0;
  /// Prepares the attention backend for every call of the pass.
  virtual void get_ready() = 0;
  /// As a home, what only this pass has besides its legs, after the chunk's results: in the order
  /// in which guests send it, since what a peer sends is received in the order of posting. Called
  /// if posts go ahead.
  virtual void post_home_extra(std::int32_t /*chunk*/) {}
  virtual void compute_local() = 0;
  virtual void compute_chunk(std::int32_t chunk) = 0;
  /// After the results of the chunk were sent.
  virtual void finish_chunk(std::int32_t chunk) = 0;
  /// After the last chunk; the last results may still be on their way.
  virtual void finish() = 0;

  /// "forward " or "backward ", and what.
  std::string span_name(const char* what) const;

  Handle post(const Exchange& exchange) { return post(exchange, stream()); }
  Handle post(const Exchange& exchange, Stream& used);
  void wait(Handle handle) { wait(handle, stream()); }
  void wait(Handle handle, Stream& used);
  /// Rounds of tags: what goes between homes and destinations; keys that do so ahead of queries;
  /// keys from relays; gradients to relays.
  static constexpr std::int32_t kHomeRound = 0, kKeyRound = 1, kRelayRound = kRelayRounds,
                                kShareRound = kRelayRounds + 1;
  Exchange exchange(Phase phase, std::int32_t chunk, std::int32_t round = kHomeRound) const {
    return {{step_, phase, chunk, round}, {}, {}, false};
  }

  /// Whether the home's part of all chunks is posted when the pass begins.
  bool goes_ahead() const { return goes_ahead_; }
  /// Whether relays work beside this pass's stream.
  bool relays_beside() const { return goes_ahead_ && context().relays != nullptr; }

  const PlanOptions& options() const { return arguments_.plan.options; }
  const WorkerProgram& program() const { return arguments_.program; }
  const Routes& routes() const { return arguments_.routes; }
  const HeadSplit& heads() const { return arguments_.routes.heads(); }
  const WorkerMemory& memory() const { return arguments_.routes.memory(); }
  WorkerContext& context() const { return arguments_.context; }
  AttentionBackend& attention() const { return arguments_.context.attention; }
  Stream& stream() const { return arguments_.stream; }
  double softmax_scale() const { return arguments_.softmax_scale; }
  const ChunkTensors& chunk_tensors() const { return chunk_tensors_; }
  Laid<ArenaLayout> arena() const { return {arena_, memory().arena}; }
  Laid<SavedLayout> saved() const { return {arguments_.saved, memory().saved}; }

 private:
  void enqueue();
  void abandon(const std::string& reason);
  void run_chunk(std::int32_t chunk);
  bool relays_keys() const { return program().has_relays && !legs_.keys.empty(); }
  void post_home();
  void lend(std::int32_t chunk);
  void lend_keys(std::int32_t kv_chunk);
  void lend_in_rounds();
  void post_first_dispatches();
  void post_keys(std::int32_t kv_chunk);
  void pass_on_first_keys();
  void pass_on_in_order(std::int32_t kv_chunk);
  void pass_on_next_keys(std::int32_t kv_chunk);
  void pass_on(std::int32_t kv_chunk);
  void receive_passed(std::int32_t kv_chunk);
  void wait_for_inputs(std::int32_t chunk);
  Exchange key_exchange(std::int32_t kv_chunk, std::int32_t round) const;
  void add_sends(Exchange& exchange, std::int32_t chunk) const;
  void add_key_sends(Exchange& exchange, std::int32_t kv_chunk) const;
  void add_key_receives(Exchange& exchange, std::int32_t kv_chunk) const;
  void add_results(Exchange& exchange, std::int32_t chunk) const;
  void post_dispatch(std::int32_t chunk);
  void copy_resident_keys(std::int32_t kv_chunk);
  void post_return(std::int32_t chunk);

  PassArguments arguments_;
  Legs legs_;
  ChunkTensors chunk_tensors_;
  std::int32_t step_ = 0;  // of run(), the next one of the context
  std::byte* arena_;
  bool goes_ahead_;
  std::vector<Handle> lent_;        // by chunk, if posts go ahead: own tensors, leaving
  std::vector<Handle> dispatched_;  // by chunk: foreign queries and keys; else both ways
  std::vector<Handle> returned_;    // by chunk: results of foreign queries, leaving
  std::vector<Handle> arriving_;    // by chunk: results of own queries, coming home
  // By KV chunk, with relays: keys from their homes; keys that this worker passes on; keys that
  // relays pass on to it.
  std::vector<Handle> keys_, passed_on_, passed_;
};

}  // namespace libra
