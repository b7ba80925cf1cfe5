#include "libra/transport/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/transport/messages.h"

namespace libra {
namespace {

using Clock = std::chrono::steady_clock;

// So that no sum of a time and a deadline overflows.
constexpr std::chrono::hours kLongestDeadline{24 * 365};

std::int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

Posting::Posting(std::int64_t id, Exchange exchange, const std::byte* arena)
    : id_(id),
      exchange_(std::move(exchange)),
      arena_(arena),
      came_(exchange_.sends.size() + exchange_.receives.size()),
      missing_(came_.size()),
      unfinished_(came_.size()) {
  record_.tag = exchange_.tag;
}

const Transfer& Posting::transfer(std::size_t transfer) const {
  return is_send(transfer) ? exchange_.sends[transfer]
                           : exchange_.receives[transfer - exchange_.sends.size()];
}

Ledger::Ledger(std::int32_t worker, const TransportOptions& options)
    : worker_(worker),
      deadline_(std::min<std::chrono::milliseconds>(options.deadline, kLongestDeadline)) {}

std::shared_ptr<Posting> Ledger::open(const Exchange& exchange, const std::byte* arena) {
  const std::lock_guard lock(mutex_);
  auto posting = std::make_shared<Posting>(next_id_++, exchange, arena);
  open_.emplace(posting->id_, posting);
  return posting;
}

std::shared_ptr<Posting> Ledger::find(Handle handle) const {
  const std::lock_guard lock(mutex_);
  LIBRA_CHECK(handle.id >= 0 && handle.id < next_id_, "worker {} has posted no exchange {}",
              worker_, handle.id);
  const auto found = open_.find(handle.id);
  return found == open_.end() ? nullptr : found->second;
}

void Ledger::arm(Posting& posting) {
  const std::lock_guard lock(mutex_);
  posting.armed_ = true;
  posting.armed_at_ = Clock::now();
  posting.record_.begin_ns = nanoseconds(posting.armed_at_);
  if (posting.unfinished_ == 0) complete(posting);
}

void Ledger::came(Posting& posting, std::size_t transfer) {
  const std::lock_guard lock(mutex_);
  if (posting.missing_ == posting.came_.size())
    posting.record_.begin_ns = nanoseconds(Clock::now());
  LIBRA_CHECK(!posting.came_[transfer], "transfer {} of {} came twice", transfer,
              describe(posting.exchange_.tag));
  posting.came_[transfer] = true;
  --posting.missing_;
}

void Ledger::finished(Posting& posting, std::size_t transfer) {
  const std::lock_guard lock(mutex_);
  const std::int64_t bytes = posting.transfer(transfer).local.bytes();
  ExchangeRecord& record = posting.record_;
  (posting.is_send(transfer) ? record.bytes_sent : record.bytes_received) += bytes;
  if (--posting.unfinished_ == 0) complete(posting);
}

void Ledger::complete(Posting& posting) {
  posting.complete_ = true;
  posting.record_.end_ns = std::max(posting.record_.begin_ns, nanoseconds(Clock::now()));
  finished_.push_back({posting.id_, posting.record_});
  open_.erase(posting.id_);
  changed_.notify_all();
}

void Ledger::fail(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = cause;
  changed_.notify_all();
}

void Ledger::hold() {
  const std::lock_guard lock(mutex_);
  ++holders_;
}

void Ledger::release() {
  const std::lock_guard lock(mutex_);
  --holders_;
  if (holders_ == 0 && !failure_.empty()) changed_.notify_all();
}

void Ledger::await(const Posting& posting) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return posting.complete_ || (!failure_.empty() && holders_ == 0); });
  if (posting.complete_) return;
  throw TransportError(
      fmt::format("worker {} gave up {}: {}", worker_, describe(posting.exchange_.tag), failure_));
}

void Ledger::settle() const {
  std::unique_lock lock(mutex_);
  LIBRA_CHECK(!failure_.empty(), "worker {} settles without a failure", worker_);
  changed_.wait(lock, [this] { return holders_ == 0; });
}

void Ledger::throw_if_failed() const {
  const std::lock_guard lock(mutex_);
  if (failure_.empty() || holders_ > 0) return;
  throw TransportError(failed_message(worker_, failure_));
}

const Posting* Ledger::first_missing() const {
  const Posting* first = nullptr;
  for (const auto& [id, posting] : open_) {
    if (!posting->armed_ || posting->missing_ == 0) continue;
    if (first == nullptr || posting->armed_at_ < first->armed_at_) first = posting.get();
  }
  return first;
}

Ledger::TimePoint Ledger::next_overdue() const {
  const std::lock_guard lock(mutex_);
  const Posting* first = first_missing();
  return (first == nullptr ? Clock::now() + kLongestDeadline : first->armed_at_ + deadline_);
}

std::string Ledger::overdue_report() const {
  const std::lock_guard lock(mutex_);
  const Posting* first = first_missing();
  if (first == nullptr || first->armed_at_ + deadline_ > Clock::now()) return {};
  std::set<std::int32_t> peers;
  for (std::size_t i = 0; i < first->transfers(); ++i)
    if (!first->came_[i]) peers.insert(first->transfer(i).peer);
  return overdue_message(worker_, deadline_, peers, first->exchange_.tag);
}

std::string Ledger::first_open() const {
  const std::lock_guard lock(mutex_);
  return open_.empty() ? std::string() : describe(open_.begin()->second->exchange_.tag);
}

std::vector<ExchangeRecord> Ledger::take_records() {
  std::vector<Finished> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(finished_);
  }
  std::sort(taken.begin(), taken.end(),
            [](const Finished& a, const Finished& b) { return a.id < b.id; });
  std::vector<ExchangeRecord> records;
  records.reserve(taken.size());
  for (const Finished& finished : taken) records.push_back(finished.record);
  return records;
}

}  // namespace libra
