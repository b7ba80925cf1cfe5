// What ends, well or not: completed exchanges, failures, the watchdog, the farewell.
#include <fmt/format.h>

#include <algorithm>

#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"
#include "libra/transport/messages.h"
#include "libra/transport/peer/process_transport.h"

namespace libra::peer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWatch{1};
constexpr std::chrono::seconds kLongestFarewell{2};
// After a failure peers may still write older values over flags that have been released.
constexpr std::chrono::milliseconds kLateWrites{50};
// What nobody takes is kept up to here.
constexpr std::size_t kMostRecords = std::size_t{1} << 16;

std::int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

// Exchanges that peers copied are noticed by the watchdog, to its millisecond. After a failure all
// stay: flags that are released say nothing, and must be released again if a peer writes one late.
void ProcessTransport::retire() {
  while (!control_.failed() && !open_.empty() && is_done(*open_.front())) {
    const ProcessPosting& posting = *open_.front();
    ExchangeRecord record = posting.record;
    record.begin_ns = record.end_ns = clock_.wall_ns(posting.reached->get());
    for (const Group& group : posting.groups) {
      const std::int64_t end =
          group.end == nullptr ? nanoseconds(Clock::now()) : clock_.wall_ns(group.end->get());
      record.end_ns = std::max(record.end_ns, end);
    }
    if (records_.size() < kMostRecords) records_.push_back(record);
    open_.pop_front();
  }
}

std::vector<ExchangeRecord> ProcessTransport::take_records() {
  const std::lock_guard lock(mutex_);
  retire();
  return std::exchange(records_, {});
}

void ProcessTransport::poll() { throw_if_failed(); }

void ProcessTransport::throw_if_failed() {
  if (!control_.failed()) return;
  mark_streams_failed();
  settle();
  throw TransportError(failed_message(worker(), control_.failure()));
}

void ProcessTransport::mark_streams_failed() {
  const std::string message = failed_message(worker(), control_.failure());
  const std::lock_guard lock(streams_mutex_);
  for (const auto& stream : streams_) stream->fail(message);
}

// Nothing of this process touches the caller's tensors afterwards. The watchdog frees what waits.
void ProcessTransport::settle() {
  std::vector<cudaStream_t> streams;
  {
    const std::lock_guard lock(mutex_);
    streams.reserve(lanes_.size());
    for (const auto& [lane, stream] : lanes_) streams.push_back(stream->get());
  }
  for (cudaStream_t stream : streams) cudaStreamSynchronize(stream);
}

void ProcessTransport::abort(const std::string& reason) {
  control_.fail(fmt::format("worker {} aborted: {}", worker(), reason));
  mark_streams_failed();
  settle();
}

// Its own alone: another process frees its streams once these know of the failure, so that none
// goes on as if its data had come.
void ProcessTransport::release_own_flags() {
  const std::lock_guard lock(mutex_);
  for (const Shared& posting : open_) {
    for (const Group& group : posting->groups) {
      if (std::uint32_t* const flag = awaited_flag(group)) release(*flag);
    }
  }
}

void ProcessTransport::watch(const std::stop_token& stop) {
  cudaSetDevice(process_.device);
  while (!stop.stop_requested()) {
    if (!control_.failed()) {
      if (const std::string reason = look(); !reason.empty()) control_.fail(reason);
    }
    if (control_.failed()) {
      mark_streams_failed();
      release_own_flags();
    }
    std::this_thread::sleep_for(kWatch);
  }
}

// Why the pool must fail; empty if it need not.
std::string ProcessTransport::look() try {
  const std::lock_guard lock(mutex_);
  retire();
  for (const Shared& posting : open_) {
    if (!posting->armed) {
      posting->armed = posting->begun && has_happened(posting->reached->get());
      posting->armed_at = Clock::now();
    }
    if (!posting->armed) break;  // what comes later has not been reached either, as a rule
    if (std::string reason = overdue(*posting); !reason.empty()) return reason;
  }
  return {};
} catch (const DeviceError& error) {
  return fmt::format("worker {}: {}", worker(), error.what());
}

std::string ProcessTransport::overdue(const ProcessPosting& posting) {
  std::set<std::int32_t> missing;
  for (const Group& group : posting.groups) {
    std::uint32_t* const flag = awaited_flag(group);
    if (flag != nullptr && !has_come(*flag, posting.value)) missing.insert(group.peer);
  }
  for (const std::int32_t peer : missing) {
    if (control_.seat(peer).left == 0) continue;
    return fmt::format("worker {} needs worker {} in {}, which has left", worker(), peer,
                       describe(posting.tag));
  }
  if (missing.empty() || Clock::now() < posting.armed_at + deadline_) return {};
  return overdue_message(worker(), deadline_, missing, posting.tag);
}

// An arena may be freed when nobody has it open any more, or somebody is beyond waiting for.
void ProcessTransport::leave() {
  {
    const std::lock_guard lock(mutex_);
    retire();
    if (!open_.empty()) {
      control_.fail(fmt::format("worker {} left before {} was complete", worker(),
                                describe(open_.front()->tag)));
    }
  }
  settle();
  if (control_.failed()) std::this_thread::sleep_for(kLateWrites);
  watchdog_.request_stop();
  watchdog_.join();
  arenas_.close_others();
  control_.seat(worker()).left = 1;
  const auto end = Clock::now() + std::min<Clock::duration>(deadline_, kLongestFarewell);
  const auto somebody_stays = [this] {
    for (std::int32_t other = 0; other < workers(); ++other) {
      if (control_.seat(other).left == 0) return true;
    }
    return false;
  };
  while (somebody_stays() && !control_.failed() && Clock::now() < end) {
    std::this_thread::sleep_for(kWatch);
  }
  open_.clear();
}

}  // namespace libra::peer
