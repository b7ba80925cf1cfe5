#include "libra/transport/inproc/progress.h"

#include <fmt/format.h>

#include <utility>

#include "libra/transport/inproc/strided_copy.h"
#include "libra/transport/messages.h"

namespace libra::inproc {

Hub::Hub(std::int32_t workers, const TransportOptions& options)
    : lanes_(static_cast<std::size_t>(workers)) {
  for (std::int32_t worker = 0; worker < workers; ++worker)
    lane(worker).ledger = std::make_shared<Ledger>(worker, options);
}

void Hub::arm(std::int32_t worker, const std::shared_ptr<Posting>& posting) {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  Lane& mine = lane(worker);
  mine.ledger->arm(*posting);
  for (std::size_t i = 0; i < posting->transfers() && !failed_; ++i) offer({worker, posting, i});
  if (mine.ledger->next_overdue() < mine.wakes_at) mine.changed.notify_one();
}

void Hub::offer(const Half& half) {
  const bool is_send = half.posting->is_send(half.transfer);
  const std::int32_t peer = half.posting->transfer(half.transfer).peer;
  const Tag& tag = half.posting->exchange().tag;
  const ChannelKey key{is_send ? half.worker : peer,
                       is_send ? peer : half.worker,
                       tag.step,
                       tag.phase,
                       tag.chunk,
                       tag.round};
  Channel& channel = channels_[key];
  std::deque<Half>& others = is_send ? channel.receives : channel.sends;
  if (others.empty()) {
    (is_send ? channel.sends : channel.receives).push_back(half);
    if (lane(peer).left) {
      fail_locked(fmt::format("worker {} needs worker {} in {}, which has left", half.worker, peer,
                              describe(tag)));
    }
    return;
  }
  const Half other = std::move(others.front());
  others.pop_front();
  if (channel.sends.empty() && channel.receives.empty()) channels_.erase(key);
  match(is_send ? Match{half, other} : Match{other, half});
}

// Whether `half` takes the other to lie where it does: data of one size that lands in another's
// place would go unnoticed.
bool Hub::finds(const Half& half, const Half& other) {
  const std::int64_t offset = half.posting->transfer(half.transfer).peer_arena_offset;
  const std::byte* const arena = other.posting->arena();
  return offset < 0 || arena == nullptr || other.view().data == arena + offset;
}

void Hub::match(const Match& match) {
  const auto& [send, receive] = match;
  if (send.view().bytes() != receive.view().bytes()) {
    fail_locked(mismatch_message(send.worker, send.view().bytes(), receive.worker,
                                 receive.view().bytes(), send.posting->exchange().tag));
    return;
  }
  if (!finds(send, receive) || !finds(receive, send)) {
    fail_locked(place_message(send.worker, receive.worker, send.posting->exchange().tag));
    return;
  }
  lane(send.worker).ledger->came(*send.posting, send.transfer);
  lane(receive.worker).ledger->came(*receive.posting, receive.transfer);
  lane(receive.worker).ready.push_back(match);
  lane(receive.worker).changed.notify_one();
}

void Hub::copy(Lane& receiver, std::unique_lock<std::mutex>& lock) {
  const auto [send, receive] = std::move(receiver.ready.front());
  receiver.ready.pop_front();
  Ledger& source = *lane(send.worker).ledger;
  source.hold();
  receiver.ledger->hold();
  lock.unlock();
  if (copy_strided(send.view(), receive.view(), failed_)) {
    source.finished(*send.posting, send.transfer);
    receiver.ledger->finished(*receive.posting, receive.transfer);
  }
  source.release();
  receiver.ledger->release();
  lock.lock();
}

void Hub::watch_deadlines(Lane& lane) {
  if (lane.ledger->next_overdue() > std::chrono::steady_clock::now()) return;
  const std::string report = lane.ledger->overdue_report();
  if (!report.empty()) fail_locked(report);
}

void Hub::serve(std::int32_t worker) {
  std::unique_lock lock(mutex_);
  Lane& mine = lane(worker);
  while (!mine.left) {
    if (failed_) {
      mine.changed.wait(lock);
      continue;
    }
    watch_deadlines(mine);
    if (failed_) continue;
    if (!mine.ready.empty()) {
      copy(mine, lock);
      continue;
    }
    mine.wakes_at = mine.ledger->next_overdue();
    mine.changed.wait_until(lock, mine.wakes_at);
    mine.wakes_at = {};
  }
}

void Hub::fail(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  fail_locked(cause);
}

// With the lock: the flag is set before the ledgers are told.
bool Hub::failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void Hub::fail_locked(const std::string& cause) {
  if (failed_.exchange(true)) return;
  for (Lane& lane : lanes_) {
    lane.ready.clear();
    lane.ledger->fail(cause);
  }
  channels_.clear();
}

std::string Hub::waiting_for(std::int32_t worker) const {
  for (const auto& [key, channel] : channels_) {
    const auto& halves = channel.sends.empty() ? channel.receives : channel.sends;
    if (halves.empty()) continue;
    const Half& half = halves.front();
    if (half.posting->transfer(half.transfer).peer != worker) continue;
    return fmt::format("worker {} waits for it in {}", half.worker,
                       describe(half.posting->exchange().tag));
  }
  return {};
}

void Hub::leave(std::int32_t worker) {
  const std::lock_guard lock(mutex_);
  Lane& mine = lane(worker);
  mine.left = true;
  mine.changed.notify_one();
  if (const std::string open = mine.ledger->first_open(); !open.empty())
    fail_locked(fmt::format("worker {} left before {} was complete", worker, open));
  if (const std::string waiting = waiting_for(worker); !waiting.empty())
    fail_locked(fmt::format("worker {} left while {}", worker, waiting));
}

Port::Port(std::shared_ptr<Hub> hub, std::int32_t worker)
    : hub_(std::move(hub)), worker_(worker), thread_([this] { hub_->serve(worker_); }) {}

Port::~Port() { leave(); }

void Port::leave() {
  if (!thread_.joinable()) return;
  hub_->leave(worker_);
  thread_.join();
  if (hub_->failed()) hub_->ledger(worker_)->settle();
}

}  // namespace libra::inproc
