// One worker of the benchmark: its GPU, its tensors, and the pools that it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/cli/gpu_tensors.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/plan/pool_plan.h"
#include "libra/runtime/event_log.h"
#include "libra/runtime/pipeliner.h"
#include "libra/transport/transport.h"

namespace libra {

/// Of one pool, forward and backward of one layer. Stream times run from the pass's first work to
/// its last; host times are those of enqueueing a forward pass, of several in a row without a
/// pause, as the layers of a model are.
struct PassTimes {
  double forward_ms = 0, backward_ms = 0;
  double forward_kernels_ms = 0, backward_kernels_ms = 0;
  double host_us = 0;
  double idle_host_us = 0;       ///< of the timed pass: alone, after a pause
  double host_attention_us = 0;  ///< of that, in the attention backend
  double host_exchange_us = 0;   ///< of that, in the transport

  double total_ms() const { return forward_ms + backward_ms; }
  double kernels_ms() const { return forward_kernels_ms + backward_kernels_ms; }
};

/// Device memory of one worker besides its own tensors, in bytes.
struct ExtraMemory {
  std::int64_t own = 0;        ///< Q, K, V, O, LSE and their gradients, for comparison
  std::int64_t planned = 0;    ///< arena, saved and scratch, the largest over the plans
  std::int64_t measured = 0;   ///< what the device lost when they were allocated
  std::int64_t attention = 0;  ///< scratch memory of the attention backend
};

class PoolWorker {
 public:
  /// `scratch_bytes` bounds the attention backend's; the host is timed over `host_layers` layers in
  /// a row, if any.
  PoolWorker(std::unique_ptr<Transport> transport, std::int32_t device, std::int64_t scratch_bytes,
             std::int32_t host_layers);

  /// Memory for the largest of the plans.
  void allocate(const std::vector<const PoolPlan*>& plans);

  /// Whatever a first run of the plan would have to build.
  void prepare(const PoolPlan& plan);

  /// So many layers of one plan. `together` returns when all workers have called it; a layer's
  /// times count from there.
  std::vector<PassTimes> run(const PoolPlan& plan, std::size_t layers,
                             const std::function<void()>& together);

  ExtraMemory extra_memory() const;
  std::int64_t graph_builds() const { return attention_.graph_builds(); }

 private:
  PassTimes run_layer(Pipeliner& pipeliner, const std::function<void()>& together);
  void enqueue_in_a_row(Pipeliner& pipeliner, PassTimes& host);

  std::int32_t host_layers_;
  std::unique_ptr<Transport> transport_;
  std::int32_t device_;
  CudaStream stream_;
  CudnnAttention attention_;
  EventLog log_;
  std::int32_t next_step_ = 0;
  double scale_ = 1;
  std::unique_ptr<cli::GpuTensors> tensors_;
  std::shared_ptr<std::byte> saved_, scratch_;
  ExtraMemory memory_;
};

}  // namespace libra
