#include "python/bindings/message_mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "libra/base/error.h"
#include "libra/transport/messages.h"
#include "python/bindings/left_behind.h"

namespace libra::python {
namespace {

constexpr std::chrono::seconds kFarewell{1};  // of messages that a failure ends

// As libra/transport/mpi names the exchanges in flight, in 27 bits.
std::int32_t wire_tag(const Tag& tag) {
  const std::int32_t step = tag.step % (1 << 12);
  return (((step << 3 | static_cast<std::int32_t>(tag.phase)) << 8 | tag.chunk) << 4) | tag.round;
}

void pack(const StridedView& from, std::byte* to) {
  for (std::int64_t row = 0; row < from.rows; ++row, to += from.row_bytes)
    std::memcpy(to, from.data + row * from.stride_bytes, static_cast<std::size_t>(from.row_bytes));
}

void unpack(const std::byte* from, const StridedView& to) {
  for (std::int64_t row = 0; row < to.rows; ++row, from += to.row_bytes)
    std::memcpy(to.data + row * to.stride_bytes, from, static_cast<std::size_t>(to.row_bytes));
}

}  // namespace

MessageMover::MessageMover(std::shared_ptr<MessagePort> port, std::shared_ptr<Ledger> ledger,
                           const TransportOptions& options)
    : port_(std::move(port)),
      ledger_(std::move(ledger)),
      deadline_(options.deadline),
      watch_([this] { return look_round(); }) {}

std::shared_ptr<MessageMover> MessageMover::start(std::shared_ptr<MessagePort> port,
                                                  std::shared_ptr<Ledger> ledger,
                                                  const TransportOptions& options) {
  auto mover = std::make_shared<MessageMover>(std::move(port), std::move(ledger), options);
  mover->thread_ = std::thread([mover] { mover->serve(); });
  return mover;
}

void MessageMover::arm(const std::shared_ptr<Posting>& posting) {
  ledger_->arm(*posting);
  for (std::size_t transfer = 0; transfer < posting->transfers(); ++transfer) {
    if (posting->transfer(transfer).local.bytes() == 0) {
      ledger_->came(*posting, transfer);
      ledger_->finished(*posting, transfer);
      continue;
    }
    std::unique_ptr<InFlight> begun = begin(posting, transfer);
    const std::lock_guard lock(mutex_);
    in_flight_.push_back(std::move(begun));
    changed_.notify_one();
  }
}

std::unique_ptr<MessageMover::InFlight> MessageMover::begin(const std::shared_ptr<Posting>& posting,
                                                            std::size_t transfer) {
  const auto& [peer, view, offset] = posting->transfer(transfer);
  if (peer == ledger_->worker()) {
    throw ConfigError(fmt::format("worker {} exchanges with itself in {}: copy instead", peer,
                                  describe(posting->exchange().tag)));
  }
  auto begun = std::make_unique<InFlight>();
  begun->posting = posting;
  begun->transfer = transfer;
  begun->overdue_at = Clock::now() + deadline_;
  begun->bytes.resize(static_cast<std::size_t>(view.bytes()));
  const std::int32_t tag = wire_tag(posting->exchange().tag);
  try {
    if (posting->is_send(transfer)) {
      pack(view, begun->bytes.data());
      begun->message = port_->send(peer, tag, begun->bytes);
    } else {
      begun->message = port_->receive(peer, tag, begun->bytes);
    }
  } catch (const TransportError& error) {
    const std::string cause = cause_of(*begun, error.what());
    fail(cause);  // or the others would be told of this stream only
    throw TransportError(fmt::format("worker {} gave up {}: {}", ledger_->worker(),
                                     describe(posting->exchange().tag), cause));
  }
  return begun;
}

void MessageMover::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return leaving_ || !in_flight_.empty(); });
    if (in_flight_.empty()) break;
    const std::shared_ptr<InFlight> first = std::move(in_flight_.front());
    in_flight_.pop_front();
    awaited_ = first;
    if (failed_) {
      lock.unlock();  // a message lets go of what is Python's
    } else {
      lock.unlock();
      finish(*first);
    }
    first->message.reset();
    lock.lock();
    awaited_ = nullptr;
  }
  served_ = true;
  ended_.notify_one();
}

void MessageMover::finish(InFlight& in_flight) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(in_flight.overdue_at - Clock::now());
  watch_.begin();
  const std::string error = in_flight.message->wait(std::max(left, std::chrono::milliseconds(1)));
  watch_.end();
  if (!error.empty()) {
    fail(cause_of(in_flight, error));
    return;
  }
  Posting& posting = *in_flight.posting;
  ledger_->hold();  // a failure is reported once nothing writes into the caller's memory
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    failed = failed_;
  }
  if (!failed) {
    ledger_->came(posting, in_flight.transfer);
    if (!posting.is_send(in_flight.transfer))
      unpack(in_flight.bytes.data(), posting.transfer(in_flight.transfer).local);
    ledger_->finished(posting, in_flight.transfer);
  }
  ledger_->release();
}

// The library says what it noticed, mostly that a connection was closed; who closed it knows why.
std::string MessageMover::cause_of(const InFlight& in_flight, const std::string& error) {
  std::string known = port_->first_cause();
  if (!known.empty()) return known;
  const std::int32_t peer = in_flight.posting->transfer(in_flight.transfer).peer;
  const Tag& tag = in_flight.posting->exchange().tag;
  if (Clock::now() >= in_flight.overdue_at)
    return overdue_message(ledger_->worker(), deadline_, {peer}, tag);
  return fmt::format("worker {} lost worker {} in {}: {}", ledger_->worker(), peer, describe(tag),
                     error);
}

// On the watch's thread, in a wait. Failing ends it, unless the message was cut in its middle.
bool MessageMover::look_round() {
  std::shared_ptr<InFlight> awaited;
  {
    const std::lock_guard lock(mutex_);
    awaited = awaited_;
  }
  std::string cause = port_->first_cause();
  if (cause.empty() && awaited != nullptr) {
    const std::string error = port_->lost(awaited->posting->transfer(awaited->transfer).peer);
    // A peer that has sent all may close: a look later what came is no longer awaited.
    if (!error.empty() && lost_ == awaited) cause = cause_of(*awaited, error);
    lost_ = error.empty() ? nullptr : awaited;
  }
  if (!cause.empty()) fail(cause);
  return !cause.empty();
}

// Whoever comes second waits for the first to have told the ledger.
void MessageMover::fail(const std::string& cause) {
  std::call_once(failing_, [&] {
    {
      const std::lock_guard lock(mutex_);
      failed_ = true;
    }
    port_->fail(cause);
    const std::string first = port_->first_cause();
    ledger_->fail(first.empty() ? cause : first);
  });
}

void MessageMover::leave() {
  std::thread thread = std::move(thread_);
  if (!thread.joinable()) return;
  if (const std::string open = ledger_->first_open(); !open.empty())
    fail(fmt::format("worker {} left before {} was complete", ledger_->worker(), open));
  std::unique_lock lock(mutex_);
  leaving_ = true;
  changed_.notify_one();
  const bool ends = !failed_ || ended_.wait_for(lock, kFarewell, [this] { return served_; });
  lock.unlock();
  ends ? thread.join() : leave_behind(std::move(thread));
}

}  // namespace libra::python
