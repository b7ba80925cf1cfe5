#include "python/bindings/pool_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/error.h"
#include "libra/base/task_queue.h"
#include "libra/plan/memory_plan.h"
#include "libra/runtime/agreement.h"

namespace libra::python {
namespace {

class HostSite final : public Site {
 public:
  explicit HostSite(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  Transport& transport() override { return *transport_; }
  AttentionBackend& attention() override { return attention_; }
  Stream& stream(std::uintptr_t) override { return stream_; }
  bool blocks() const override { return true; }

 private:
  std::unique_ptr<Transport> transport_;
  ReferenceAttention attention_;
  TaskQueue stream_;
};

}  // namespace

std::unique_ptr<Site> make_host_site(std::unique_ptr<Transport> transport) {
  return std::make_unique<HostSite>(std::move(transport));
}

PoolWorker::PoolWorker(std::unique_ptr<Site> site)
    : site_(std::move(site)), context_{site_->attention(), site_->transport(), log_} {
  log_.enable(site_->blocks());
}

PoolWorker::~PoolWorker() = default;

std::shared_ptr<BoundPlan> PoolWorker::bind(std::shared_ptr<const PoolPlan> plan,
                                            std::uintptr_t stream) {
  Stream& used = site_->stream(stream);
  Agreement(plan_fingerprint(*plan), context_, used).check();
  site_->transport().take_records();
  auto bound = std::make_shared<BoundPlan>(std::move(plan), context_);
  const std::int64_t arena = max_arena_bytes(*bound->plan);
  if (arena > site_->transport().arena_bytes()) {
    used.synchronize();
    site_->transport().reserve_arena(arena);  // the same on every worker
  }
  return bound;
}

template <typename Pass>
void PoolWorker::run(Stream& stream, const Pass& pass) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    pass();
  } catch (const ConfigError& error) {
    // Nothing was enqueued here; the others have begun, and would wait until their deadline.
    if (workers() > 1) abort(error.what());
    throw;
  } catch (const TransportError&) {
    if (site_->blocks()) stream.synchronize();  // throws the cause if it was the stream's own
    throw;
  }
  if (site_->blocks()) stream.synchronize();
  account(std::chrono::steady_clock::now() - begin);
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

void PoolWorker::record(bool on) {
  recording_ = on;
  if (on) timeline_ = {};
}

std::string PoolWorker::trace() const {
  TraceProcess process =
      measured_timeline(fmt::format("worker {} of the pool", worker()), {timeline_});
  return trace_to_json({process});
}

PassFigures PoolWorker::take_figures() { return std::exchange(figures_, {}); }

// After each pass that is done on return: what it took, and nothing of it is kept in the log.
void PoolWorker::account(std::chrono::nanoseconds pass_time) {
  ++figures_.passes;
  if (!site_->blocks()) return;
  const std::vector<ExchangeRecord> records = site_->transport().take_records();
  for (const ExchangeRecord& record : records) {
    figures_.bytes_sent += record.bytes_sent;
    figures_.bytes_received += record.bytes_received;
  }
  figures_.compute_seconds += log_.busy_seconds();
  if (recording_) {
    timeline_.events.insert(timeline_.events.end(), log_.events().begin(), log_.events().end());
    timeline_.records.insert(timeline_.records.end(), records.begin(), records.end());
  }
  figures_.pass_seconds += std::chrono::duration<double>(pass_time).count();
  log_.clear();
}

}  // namespace libra::python
