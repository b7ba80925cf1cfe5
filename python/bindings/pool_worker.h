// One worker of a pool in a training process: its transport, attention and streams, and the passes
// that it runs with them, layer after layer, plan after plan.
//
//   PoolWorker worker(std::move(site));
//   worker.agree(*plan);                                             // with the pool
//   std::shared_ptr<BoundPlan> bound = worker.bind(plan, stream_handle);
//   worker.forward(*bound, tensors, scale, saved, stream_handle);
//
// Every worker binds the same plans and runs the same passes in the same order. One launching
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "libra/runtime/pipeliner.h"
#include "libra/runtime/trace.h"
#include "python/bindings/plugged_attention.h"

namespace libra::python {

/// Where a pool's passes run: on TaskQueues, or on the streams of one GPU.
class Site {
 public:
  virtual ~Site() = default;
  virtual Transport& transport() = 0;
  virtual AttentionBackend& attention() = 0;
  /// The stream that the caller's framework calls `handle`; 0 on a CPU.
  virtual Stream& stream(std::uintptr_t handle) = 0;
  /// As WorkerContext::relays.
  virtual Stream* relays() = 0;
  /// Whether passes are done on return, as CPU tensors must be.
  virtual bool blocks() const = 0;
  /// Of cuDNN, in this process so far.
  virtual std::int64_t graph_builds() const { return 0; }
  /// A pass has been enqueued on one of the streams.
  virtual void passed(Stream& /*stream*/) {}
  /// Whether others may still need what such passes do. Not once the pool has failed.
  virtual bool is_busy() { return false; }
};

/// `kernels`: instead of the reference attention, unless null.
std::unique_ptr<Site> make_host_site(std::unique_ptr<Transport> transport, Kernels kernels);

/// A plan with what its passes need on this worker.
struct BoundPlan {
  BoundPlan(std::shared_ptr<const PoolPlan> given, WorkerContext& context)
      : plan(std::move(given)), pipeliner(*plan, context) {}

  std::shared_ptr<const PoolPlan> plan;
  Pipeliner pipeliner;
};

/// Sums over the passes since the last time that they were taken.
struct PassFigures {
  std::int64_t passes = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t graphs_built = 0;  ///< by the process, for shapes that it had not met before
  // On a GPU only of passes that were measured:
  double compute_seconds = 0;  ///< of attention on this worker
  double pass_seconds = 0;     ///< in passes, waiting among it
};

class PoolWorker {
 public:
  explicit PoolWorker(std::unique_ptr<Site> site);
  ~PoolWorker();
  PoolWorker(const PoolWorker&) = delete;
  PoolWorker& operator=(const PoolWorker&) = delete;

  std::string transport_name() const { return site_->transport().name(); }
  std::int32_t worker() const { return site_->transport().worker(); }
  std::int32_t workers() const { return site_->transport().workers(); }

  /// Waits until all workers have come here. Throws PlanError if another one has another plan,
  /// TransportError if one does not come. Requires a site that blocks: on a GPU, what a stream
  /// waits for may stand in a hardware queue behind all that is enqueued, so a pool of GPUs has a
  /// worker on the CPU beside it for this.
  void agree(const PoolPlan& plan);

  /// What passes of the plan need. Requires that the pool has agreed on it. Throws ConfigError if
  /// the pool has other workers than the plan.
  std::shared_ptr<BoundPlan> bind(std::shared_ptr<const PoolPlan> plan, std::uintptr_t stream);

  /// As Pipeliner's. Whatever is thrown, the other workers are told.
  void forward(BoundPlan& bound, const ForwardTensors& own, double softmax_scale, std::byte* saved,
               std::uintptr_t stream);
  void backward(BoundPlan& bound, const BackwardTensors& own, double softmax_scale,
                std::byte* saved, std::byte* scratch, std::uintptr_t stream);

  /// Fails every worker's passes with this reason: this one cannot go on.
  void abort(const std::string& reason) { site_->transport().abort(reason); }

  /// On a GPU: marks the beginning and end of passes and of what they compute from now on, which
  /// costs the host some microseconds each. On a CPU it is always so.
  void measure(bool on);

  /// Starts and ends the recording of a timeline; waits for what is enqueued on the stream.
  void record(bool on, std::uintptr_t stream);
  /// The timeline recorded so far, as Chrome trace JSON.
  std::string trace() const;
  /// Whether passes are in flight: leaving now would fail the other workers, too.
  bool is_busy() { return site_->is_busy(); }
  /// Waits for what is enqueued on the stream if its passes have been measured.
  PassFigures take_figures(std::uintptr_t stream);

 private:
  template <typename Pass>
  void run(Stream& stream, const Pass& pass);
  bool measures() const { return site_->blocks() || measuring_ || recording_; }
  void collect();

  /// Of one pass, on its stream.
  struct PassTime {
    Timestamp begin;
    Timestamp end;
  };

  EventLog log_;
  std::deque<PassTime> pass_times_;  // addresses must stay: streams write into them
  std::unique_ptr<Site> site_;       // below what its streams write into
  WorkerContext context_;
  PassFigures figures_;
  std::int64_t graph_builds_;  // when figures were last taken
  bool measuring_ = false;
  bool recording_ = false;
  WorkerTrace timeline_;
};

}  // namespace libra::python
