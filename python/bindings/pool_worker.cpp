#include "python/bindings/pool_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/task_queue.h"
#include "libra/plan/memory_plan.h"
#include "libra/runtime/agreement.h"

namespace libra::python {
namespace {

class HostSite final : public Site {
 public:
  HostSite(std::unique_ptr<Transport> transport, Kernels kernels)
      : transport_(std::move(transport)),
        attention_(plug_in(std::move(kernels), std::make_unique<ReferenceAttention>(), -1,
                           [this](Stream& stream, std::function<void()> work) {
                             enqueue(stream, std::move(work));
                           })) {}

  Transport& transport() override { return *transport_; }
  AttentionBackend& attention() override { return *attention_; }
  Stream& stream(std::uintptr_t) override { return stream_; }
  Stream* relays() override { return nullptr; }
  bool blocks() const override { return true; }

 private:
  // The peers are told why at once: they would wait for what this worker sends next.
  void enqueue(Stream& stream, std::function<void()> work) {
    dynamic_cast<TaskQueue&>(stream).enqueue([this, work = std::move(work)] {
      try {
        work();
      } catch (const std::exception& error) {
        if (transport_->workers() > 1) transport_->abort(error.what());
        throw;
      }
    });
  }

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<AttentionBackend> attention_;
  TaskQueue stream_;
};

// For who has a cause to throw already.
void settle(Stream& stream) {
  try {
    stream.synchronize();
  } catch (const Error&) {  // what follows from the cause
  }
}

}  // namespace

std::unique_ptr<Site> make_host_site(std::unique_ptr<Transport> transport, Kernels kernels) {
  return std::make_unique<HostSite>(std::move(transport), std::move(kernels));
}

PoolWorker::PoolWorker(std::unique_ptr<Site> site)
    : site_(std::move(site)),
      context_{site_->attention(), site_->transport(), log_, 0, site_->relays()},
      graph_builds_(site_->graph_builds()) {
  log_.enable(site_->blocks());
}

PoolWorker::~PoolWorker() = default;

void PoolWorker::agree(const PoolPlan& plan) {
  LIBRA_CHECK(site_->blocks(), "worker {} would wait for others in a hardware queue", worker());
  Agreement(plan_fingerprint(plan), context_, site_->stream(0)).check();
}

std::shared_ptr<BoundPlan> PoolWorker::bind(std::shared_ptr<const PoolPlan> plan,
                                            std::uintptr_t stream) {
  auto bound = std::make_shared<BoundPlan>(std::move(plan), context_);
  const std::int64_t arena = max_arena_bytes(*bound->plan);
  if (arena > site_->transport().arena_bytes()) {
    site_->stream(stream).synchronize();
    site_->transport().reserve_arena(arena);  // the same on every worker
  }
  return bound;
}

// Whatever is thrown: what was enqueued is past, so that the caller may free its tensors.
template <typename Pass>
void PoolWorker::run(Stream& stream, const Pass& pass) {
  PassTime* const time = measures() ? &pass_times_.emplace_back() : nullptr;
  try {
    if (time != nullptr) stream.mark(&time->begin);
    pass();
    if (time != nullptr) stream.mark(&time->end);
  } catch (const ConfigError& error) {
    // The others have begun, and would wait until their deadline.
    if (workers() > 1) abort(error.what());
    settle(stream);
    throw;
  } catch (const Error&) {
    stream.synchronize();  // throws the cause if it was the stream's own
    throw;
  } catch (...) {
    settle(stream);
    throw;
  }
  ++figures_.passes;
  site_->passed(stream);
  if (!site_->blocks()) return;
  stream.synchronize();
  collect();
}

void PoolWorker::forward(BoundPlan& bound, const ForwardTensors& own, double softmax_scale,
                         std::byte* saved, std::uintptr_t stream) {
  Stream& used = site_->stream(stream);
  run(used, [&] { bound.pipeliner.forward(own, softmax_scale, saved, used); });
}

void PoolWorker::backward(BoundPlan& bound, const BackwardTensors& own, double softmax_scale,
                          std::byte* saved, std::byte* scratch, std::uintptr_t stream) {
  Stream& used = site_->stream(stream);
  run(used, [&] { bound.pipeliner.backward(own, softmax_scale, saved, scratch, used); });
}

void PoolWorker::measure(bool on) {
  measuring_ = on;
  log_.enable(measures());
}

void PoolWorker::record(bool on, std::uintptr_t stream) {
  if (!site_->blocks()) {
    site_->stream(stream).synchronize();
    collect();
  }
  recording_ = on;
  log_.enable(measures());
  if (on) timeline_ = {};
}

std::string PoolWorker::trace() const {
  TraceProcess process =
      measured_timeline(fmt::format("worker {} of the pool", worker()), {timeline_});
  return trace_to_json({process});
}

PassFigures PoolWorker::take_figures(std::uintptr_t stream) {
  if (!site_->blocks()) {
    if (measures()) site_->stream(stream).synchronize();
    collect();
  }
  const std::int64_t builds = site_->graph_builds();
  figures_.graphs_built = builds - std::exchange(graph_builds_, builds);
  return std::exchange(figures_, {});
}

// What passes took and moved; nothing of it stays in the log. Requires that the streams of passes
// that were measured are idle.
void PoolWorker::collect() {
  const std::vector<ExchangeRecord> records = site_->transport().take_records();
  for (const ExchangeRecord& record : records) {
    figures_.bytes_sent += record.bytes_sent;
    figures_.bytes_received += record.bytes_received;
  }
  for (const PassTime& time : pass_times_) {
    if (time.end.wall_ns == 0) continue;  // broke off
    figures_.pass_seconds += static_cast<double>(time.end.wall_ns - time.begin.wall_ns) * 1e-9;
  }
  figures_.compute_seconds += log_.busy_seconds();
  if (recording_) {
    timeline_.records.insert(timeline_.records.end(), records.begin(), records.end());
    timeline_.events.insert(timeline_.events.end(), log_.events().begin(), log_.events().end());
  }
  pass_times_.clear();
  log_.clear();
}

}  // namespace libra::python
