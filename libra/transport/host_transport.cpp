#include "libra/transport/host_transport.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/task_queue.h"
#include "libra/transport/check_exchange.h"

namespace libra {
namespace {

TaskQueue& task_queue(Stream& stream) {
  auto* queue = dynamic_cast<TaskQueue*>(&stream);
  LIBRA_CHECK(queue != nullptr, "a host transport works with TaskQueue streams only");
  return *queue;
}

}  // namespace

HostTransport::HostTransport(std::string name, std::int32_t workers, std::shared_ptr<Ledger> ledger,
                             std::shared_ptr<Mover> mover)
    : name_(std::move(name)),
      workers_(workers),
      ledger_(std::move(ledger)),
      mover_(std::move(mover)) {}

HostTransport::~HostTransport() { mover_->leave(); }

void HostTransport::reserve_arena(std::int64_t bytes) {
  if (bytes <= arena_.bytes()) return;
  const std::string open = ledger_->first_open();
  LIBRA_CHECK(open.empty(), "worker {} grows its arena while {} is in flight", worker(), open);
  arena_.reserve(bytes);
}

Handle HostTransport::post(const Exchange& exchange, Stream& stream) {
  poll();
  check_exchange(exchange, worker(), workers_);
  TaskQueue& queue = task_queue(stream);
  const std::shared_ptr<Posting> posting = ledger_->open(exchange, arena_.data());
  queue.enqueue([ledger = ledger_, mover = mover_, posting] {
    ledger->throw_if_failed();
    mover->arm(posting);
  });
  // The stream has failed for a reason of its own: the peers must not wait for this worker until
  // their deadline, nor reach into memory that its owner, who gets the error, is about to free.
  queue.enqueue_on_failure([ledger = ledger_, mover = mover_, posting] {
    mover->fail(fmt::format("worker {} cannot go on: its stream failed before {}", ledger->worker(),
                            describe(posting->exchange().tag)));
    ledger->settle();
  });
  return Ledger::handle(*posting);
}

void HostTransport::wait(Handle handle, Stream& stream) {
  const std::shared_ptr<Posting> posting = ledger_->find(handle);
  if (posting == nullptr) return;
  TaskQueue& queue = task_queue(stream);
  queue.enqueue([ledger = ledger_, posting] { ledger->await(*posting); });
  queue.enqueue_on_failure([ledger = ledger_, mover = mover_, posting] {
    mover->fail(fmt::format("worker {} cannot go on: its stream failed before the wait for {}",
                            ledger->worker(), describe(posting->exchange().tag)));
    ledger->settle();
  });
}

void HostTransport::abort(const std::string& reason) {
  mover_->fail(fmt::format("worker {} aborted: {}", worker(), reason));
  ledger_->settle();
}

}  // namespace libra
