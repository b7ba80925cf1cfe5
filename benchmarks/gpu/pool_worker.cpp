#include "benchmarks/gpu/pool_worker.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "libra/base/index.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/plan/memory_plan.h"

namespace libra {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& sum_us) : sum_us_(sum_us) {}
  ~Stopwatch() {
    sum_us_ += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin_)
                   .count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_us_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Passes everything on and adds up what it takes the host.
class WatchedTransport final : public Transport {
 public:
  WatchedTransport(Transport& inner, double& sum_us) : inner_(inner), sum_us_(sum_us) {}
  std::string name() const override { return inner_.name(); }
  bool posts_ahead() const override { return inner_.posts_ahead(); }
  std::int32_t worker() const override { return inner_.worker(); }
  std::int32_t workers() const override { return inner_.workers(); }
  void reserve_arena(std::int64_t bytes) override { inner_.reserve_arena(bytes); }
  std::byte* arena() override { return inner_.arena(); }
  std::int64_t arena_bytes() const override { return inner_.arena_bytes(); }
  Handle post(const Exchange& exchange, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    return inner_.post(exchange, stream);
  }
  void wait(Handle handle, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.wait(handle, stream);
  }
  void poll() override { inner_.poll(); }
  void abort(const std::string& reason) override { inner_.abort(reason); }
  std::vector<ExchangeRecord> take_records() override { return inner_.take_records(); }

 private:
  Transport& inner_;
  double& sum_us_;
};

class WatchedAttention final : public AttentionBackend {
 public:
  WatchedAttention(AttentionBackend& inner, double& sum_us) : inner_(inner), sum_us_(sum_us) {}
  std::string_view name() const override { return inner_.name(); }
  void prepare(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override {
    inner_.prepare(call, tensors, stream);
  }
  void prepare(const AttentionCall& call, const BackwardTensors& tensors, Stream& stream) override {
    inner_.prepare(call, tensors, stream);
  }
  void forward(const AttentionCall& call, const ForwardTensors& tensors, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.forward(call, tensors, stream);
  }
  bool can_write(const AttentionCall& call, const BackwardTensors& tensors) override {
    return inner_.can_write(call, tensors);
  }
  void backward(const AttentionCall& call, const BackwardTensors& tensors,
                Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.backward(call, tensors, stream);
  }
  void copy(StridedView from, StridedView to, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.copy(from, to, stream);
  }
  void fill(const TensorView& tensor, double value, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.fill(tensor, value, stream);
  }
  void add(const TensorView& from, const TensorView& to, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.add(from, to, stream);
  }
  void convert(const TensorView& from, const TensorView& to, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.convert(from, to, stream);
  }
  void poison_on_failure(const TensorView& tensor, Stream& stream) override {
    const Stopwatch watch(sum_us_);
    inner_.poison_on_failure(tensor, stream);
  }

 private:
  AttentionBackend& inner_;
  double& sum_us_;
};

double milliseconds(const Timestamp& begin, const Timestamp& end) {
  return static_cast<double>(end.wall_ns - begin.wall_ns) * 1e-6;
}

std::int64_t free_bytes() {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free);
}

}  // namespace

PoolWorker::PoolWorker(std::unique_ptr<Transport> transport, std::int32_t device,
                       std::int64_t scratch_bytes, std::int32_t host_layers)
    : host_layers_(host_layers),
      transport_(std::move(transport)),
      device_(device),
      stream_(device),
      attention_(device, {scratch_bytes, false}) {}

void PoolWorker::allocate(const std::vector<const PoolPlan*>& plans) {
  std::int64_t saved = 0, scratch = 0, arena = 0, rows = 0;
  for (const PoolPlan* plan : plans) {
    const WorkerMemory memory = plan_memory(*plan)[at(transport_->worker())];
    saved = std::max(saved, memory.saved.bytes);
    scratch = std::max(scratch, memory.scratch.bytes);
    arena = std::max(arena, max_arena_bytes(*plan));
    rows = std::max(rows, plan->layout.part_of(transport_->worker()).rows);
  }
  memory_.planned = arena + saved + scratch;
  const std::int64_t before = free_bytes();
  transport_->reserve_arena(arena);
  saved_ = allocate_device(device_, saved);
  scratch_ = allocate_device(device_, scratch);
  memory_.measured = before - free_bytes();
  const AttentionShape& shape = plans.front()->options.shape;
  scale_ = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  tensors_ = std::make_unique<cli::GpuTensors>(device_, rows, shape.q_heads, shape.kv_heads,
                                               shape.head_dim);
  memory_.own =
      rows * ((4 * shape.q_heads + 4 * shape.kv_heads) * std::int64_t{shape.head_dim} * 2 +
              4 * shape.q_heads);
}

void PoolWorker::prepare(const PoolPlan& plan) {
  WorkerContext context{attention_, *transport_, log_, next_step_};
  Pipeliner pipeliner(plan, context);
  pipeliner.prepare(tensors_->backward(pipeliner.program().rows), saved_.get(), scratch_.get(),
                    stream_);
}

std::vector<PassTimes> PoolWorker::run(const PoolPlan& plan, std::size_t layers,
                                       const std::function<void()>& together) {
  PassTimes host;
  WatchedTransport transport(*transport_, host.host_exchange_us);
  WatchedAttention attention(attention_, host.host_attention_us);
  WorkerContext context{attention, transport, log_, next_step_};
  Pipeliner pipeliner(plan, context);
  std::vector<PassTimes> times;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    times.push_back(run_layer(pipeliner, together));
  }
  if (host_layers_ > 0) enqueue_in_a_row(pipeliner, host);
  for (PassTimes& layer : times) {
    layer.host_us = host.host_us;
    layer.host_attention_us = host.host_attention_us;
    layer.host_exchange_us = host.host_exchange_us;
  }
  transport_->take_records();
  next_step_ = context.next_step;
  return times;
}

PassTimes PoolWorker::run_layer(Pipeliner& pipeliner, const std::function<void()>& together) {
  PassTimes times;
  log_.clear();
  const std::int64_t rows = pipeliner.program().rows;
  Timestamp begin, middle, end;
  together();
  stream_.mark(&begin);
  {
    const Stopwatch watch(times.idle_host_us);
    pipeliner.forward(tensors_->forward(rows), scale_, saved_.get(), stream_);
  }
  stream_.mark(&middle);
  pipeliner.backward(tensors_->backward(rows), scale_, saved_.get(), scratch_.get(), stream_);
  stream_.mark(&end);
  stream_.synchronize();
  times.forward_ms = milliseconds(begin, middle);
  times.backward_ms = milliseconds(middle, end);
  for (const Event& event : log_.events()) {
    const bool forward = event.name.rfind("forward", 0) == 0;
    (forward ? times.forward_kernels_ms : times.backward_kernels_ms) +=
        milliseconds(event.begin, event.end);
  }
  transport_->take_records();
  return times;
}

// A timeline is for one layer: the log is off.
void PoolWorker::enqueue_in_a_row(Pipeliner& pipeliner, PassTimes& host) {
  log_.enable(false);
  host = {};
  {
    const Stopwatch watch(host.host_us);
    for (int i = 0; i < host_layers_; ++i) {
      pipeliner.forward(tensors_->forward(pipeliner.program().rows), scale_, saved_.get(), stream_);
    }
  }
  stream_.synchronize();
  log_.enable(true);
  for (double* sum : {&host.host_us, &host.host_attention_us, &host.host_exchange_us}) {
    *sum /= host_layers_;
  }
}

ExtraMemory PoolWorker::extra_memory() const {
  ExtraMemory memory = memory_;
  memory.attention = attention_.scratch_bytes();
  return memory;
}

}  // namespace libra
