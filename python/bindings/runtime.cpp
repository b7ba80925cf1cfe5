#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/host_transport.h"
#include "libra/transport/inproc/transport.h"
#include "python/bindings/bindings.h"
#include "python/bindings/device_site.h"
#include "python/bindings/left_behind.h"
#include "python/bindings/message_mover.h"
#include "python/bindings/pool_worker.h"
#include "python/bindings/process_owned.h"
#include "python/bindings/python_port.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

// (address, dtype, rows, heads, dim, row stride, head stride), as libra/_tensors.py makes it.
using Tensor = std::tuple<std::uintptr_t, std::string, std::int64_t, std::int32_t, std::int32_t,
                          std::int64_t, std::int64_t>;

TensorView tensor_view(const Tensor& tensor) {
  const auto& [address, dtype, rows, heads, dim, row_stride, head_stride] = tensor;
  return {reinterpret_cast<void*>(address),
          parse_dtype(dtype),
          rows,
          heads,
          dim,
          row_stride,
          head_stride};
}

std::byte* memory_at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

TransportOptions within(double deadline_seconds) {
  TransportOptions options;
  options.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(deadline_seconds * 1e3));
  check_options(options);
  return options;
}

std::unique_ptr<PoolWorker> host_worker(nb::object port, std::int32_t worker, std::int32_t workers,
                                        double deadline_seconds, Kernels kernels) {
  const TransportOptions options = within(deadline_seconds);
  std::unique_ptr<Transport> transport;
  if (workers == 1) {
    transport = std::move(make_inproc_group(1, options).front());
  } else {
    auto ledger = std::make_shared<Ledger>(worker, options);
    auto mover = MessageMover::start(make_python_port(std::move(port)), ledger, options);
    transport = std::make_unique<HostTransport>("torch.distributed", workers, std::move(ledger),
                                                std::move(mover));
  }
  return std::make_unique<PoolWorker>(make_host_site(std::move(transport), std::move(kernels)));
}

nb::dict as_dict(const PassFigures& figures) {
  nb::dict dict;
  dict["passes"] = figures.passes;
  dict["bytes_sent"] = figures.bytes_sent;
  dict["bytes_received"] = figures.bytes_received;
  dict["graphs_built"] = figures.graphs_built;
  dict["compute_seconds"] = figures.compute_seconds;
  dict["pass_seconds"] = figures.pass_seconds;
  return dict;
}

// What Python holds: the interpreter's lock is let go wherever a peer or a thread may be waited
// for, on the way out too. Passes of several threads run one after the other; one that is running
// when the pool is closed breaks off, and has the worker to itself until then.
class Worker {
  // Held by whoever uses it, so that closing takes it from nobody; let go without the
  // interpreter's lock, which the worker's own threads may need to end.
  template <typename Use>
  auto with_worker(const Use& use) const {
    auto held = worker_;
    if (held == nullptr) throw ConfigError("the pool has been closed: make a new one");
    const nb::gil_scoped_release unlocked;
    const auto worker = std::move(held);
    return use(worker->get());
  }

  template <typename Use>
  auto alone(const Use& use) {
    return with_worker([&](PoolWorker& worker) {
      const std::lock_guard lock(turn_);
      return use(worker);
    });
  }

 public:
  explicit Worker(std::unique_ptr<PoolWorker> worker)
      : worker_(std::make_shared<ProcessOwned<PoolWorker>>(std::move(worker))) {}
  ~Worker() { close(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void close() {
    auto worker = std::exchange(worker_, nullptr);
    const nb::gil_scoped_release unlocked;
    if (worker.use_count() > 1 && worker->is_own())
      worker->get().abort("the pool was closed in the middle of a pass");
    worker.reset();
  }

  // False, too, while a pass is being enqueued by another thread: closing breaks that off.
  bool is_busy() {
    if (worker_ == nullptr || !worker_->is_own()) return false;
    return with_worker([&](PoolWorker& worker) {
      const std::unique_lock lock(turn_, std::try_to_lock);
      return lock.owns_lock() && worker.is_busy();
    });
  }

  std::string transport_name() const {
    return with_worker([](const PoolWorker& worker) { return worker.transport_name(); });
  }

  void agree(const PoolPlan& plan) {
    alone([&](PoolWorker& worker) { worker.agree(plan); });
  }

  std::shared_ptr<BoundPlan> bind(std::shared_ptr<PoolPlan> plan, std::uintptr_t stream) {
    return alone([&](PoolWorker& worker) { return worker.bind(std::move(plan), stream); });
  }

  void forward(BoundPlan& bound, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
               const Tensor& lse, double scale, std::uintptr_t saved, std::uintptr_t stream) {
    alone([&](PoolWorker& worker) {
      worker.forward(
          bound, {tensor_view(q), tensor_view(k), tensor_view(v), tensor_view(o), tensor_view(lse)},
          scale, memory_at(saved), stream);
    });
  }

  void backward(BoundPlan& bound, const Tensor& q, const Tensor& k, const Tensor& v,
                const Tensor& o, const Tensor& lse, const Tensor& d_o, const Tensor& dq,
                const Tensor& dk, const Tensor& dv, double scale, std::uintptr_t saved,
                std::uintptr_t scratch, std::uintptr_t stream) {
    alone([&](PoolWorker& worker) {
      worker.backward(
          bound,
          {tensor_view(q), tensor_view(k), tensor_view(v), tensor_view(o), tensor_view(lse),
           tensor_view(d_o), tensor_view(dq), tensor_view(dk), tensor_view(dv)},
          scale, memory_at(saved), memory_at(scratch), stream);
    });
  }

  void measure(bool on) {
    alone([&](PoolWorker& worker) { worker.measure(on); });
  }

  void record(bool on, std::uintptr_t stream) {
    alone([&](PoolWorker& worker) { worker.record(on, stream); });
  }

  std::string trace() {
    return alone([](const PoolWorker& worker) { return worker.trace(); });
  }

  nb::dict take_figures(std::uintptr_t stream) {
    return as_dict(alone([&](PoolWorker& worker) { return worker.take_figures(stream); }));
  }

  void abort(const std::string& reason) {
    with_worker([&](PoolWorker& worker) { worker.abort(reason); });
  }

 private:
  std::shared_ptr<ProcessOwned<PoolWorker>> worker_;  // guarded by the interpreter's lock
  std::mutex turn_;
};

std::unique_ptr<Worker> device_worker(const std::string& pool, std::int32_t worker,
                                      std::int32_t workers, std::int32_t device, bool one_queue,
                                      double deadline_seconds, std::vector<std::int32_t> near,
                                      const nb::bytes& nccl_id, nb::object runner) {
  const Kernels kernels = kernels_of(std::move(runner));
  const DevicePlace place{
      pool, worker, workers, device, one_queue, std::move(near), {nccl_id.c_str(), nccl_id.size()}};
  const nb::gil_scoped_release unlocked;
  return std::make_unique<Worker>(
      std::make_unique<PoolWorker>(make_device_site(place, within(deadline_seconds), kernels)));
}

}  // namespace

void bind_runtime(nb::module_& module) {
  nb::class_<BoundPlan>(module, "BoundPlan", "A plan that the pool has agreed on.")
      .def_prop_ro("saved_bytes",
                   [](const BoundPlan& bound) { return bound.pipeliner.memory().saved.bytes; })
      .def_prop_ro("scratch_bytes",
                   [](const BoundPlan& bound) { return bound.pipeliner.memory().scratch.bytes; });
  nb::class_<Worker>(module, "Worker", "One worker of a pool; see libra/_pool.py.")
      .def_prop_ro("transport", &Worker::transport_name)
      .def("agree", &Worker::agree, "plan"_a)
      .def("bind", &Worker::bind, "plan"_a, "stream"_a)
      .def("forward", &Worker::forward)
      .def("backward", &Worker::backward)
      .def("abort", &Worker::abort, "reason"_a)
      .def("measure", &Worker::measure, "on"_a)
      .def("record", &Worker::record, "on"_a, "stream"_a)
      .def("trace", &Worker::trace)
      .def("take_figures", &Worker::take_figures, "stream"_a)
      .def("is_busy", &Worker::is_busy)
      .def("close", &Worker::close);
  module.def(
      "await_left_behind", &await_left_behind, nb::call_guard<nb::gil_scoped_release>(),
      "Waits for what closed workers left behind: messages that nothing can end, until their "
      "deadline.");
  module.def(
      "host_worker",
      [](nb::object port, std::int32_t worker, std::int32_t workers, double deadline,
         nb::object runner) {
        return std::make_unique<Worker>(
            host_worker(std::move(port), worker, workers, deadline, kernels_of(std::move(runner))));
      },
      "port"_a.none(), "worker"_a, "workers"_a, "deadline"_a, "runner"_a.none() = nb::none(),
      "A worker on CPU tensors; `port` carries its messages (libra/_port.py), `runner` computes "
      "(libra/_entries.py).");
  module.def("device_worker", &device_worker, "pool"_a, "worker"_a, "workers"_a, "device"_a,
             "one_queue"_a, "deadline"_a, "near"_a, "nccl_id"_a, "runner"_a.none() = nb::none(),
             "A worker on CUDA tensors of one device; see python/bindings/device_site.h.");
  module.def(
      "make_nccl_id",
      [] {
        const std::string id = new_nccl_id();
        return nb::bytes(id.data(), id.size());
      },
      "For one worker to make and all to be given. Raises ConfigError if this build has no NCCL.");
}

}  // namespace libra::python
