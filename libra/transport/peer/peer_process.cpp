#include "libra/transport/peer/peer_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/cuda/stream_flags.h"
#include "libra/cuda/strided_copy.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/messages.h"
#include "libra/transport/peer/arenas.h"

namespace libra {
namespace {

using peer::ControlBlock;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWatch{1};
constexpr std::chrono::seconds kLongestFarewell{2};
constexpr std::size_t kMostRecords = std::size_t{1} << 16;

enum class Role : std::uint8_t {
  kCopies,   // this side copies once the other is ready
  kSignals,  // this side says that it is ready; the other copies
  kMails,    // host memory to host memory
};

/// The transfers of a posting with one peer in one direction.
struct Group {
  std::int32_t peer = 0;
  bool send = false;
  Role role = Role::kCopies;
  std::vector<Transfer> transfers;
  std::uint32_t* ready = nullptr;  // host addresses
  std::uint32_t* done = nullptr;
  std::shared_ptr<PooledEvent> end;  // null if the peer copies
};

struct Posting {
  std::int64_t id = 0;
  Tag tag;
  std::uint32_t value = 0;
  std::shared_ptr<PooledEvent> reached;
  std::vector<Group> groups;
  ExchangeRecord record;
  bool armed = false;  // the stream has come to the post, and the deadline counts
  Clock::time_point armed_at;
};

std::int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// A few bytes copied on the host in a stream's order.
struct HostCopy {
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
};

void enqueue_host_copy(cudaStream_t stream, const HostCopy& copy) {
  const auto run = [](void* data) {
    const std::unique_ptr<HostCopy> task(static_cast<HostCopy*>(data));
    std::memcpy(task->to, task->from, task->bytes);
  };
  check_cuda(cudaLaunchHostFunc(stream, run, std::make_unique<HostCopy>(copy).release()),
             "cudaLaunchHostFunc");
}

class ProcessTransport final : public Transport {
 public:
  ProcessTransport(const PeerProcess& process, const TransportOptions& options)
      : process_(process),
        deadline_(options.deadline),
        control_(process.pool, process.worker, process.workers, options.deadline),
        arenas_(control_, process.worker, process.device),
        events_(process.device, EventPool::Kind::kTiming),
        admin_(process.device),
        clock_(process.device, admin_.get()),
        watchdog_([this](const std::stop_token& stop) { watch(stop); }) {}
  ~ProcessTransport() override { leave(); }
  ProcessTransport(const ProcessTransport&) = delete;
  ProcessTransport& operator=(const ProcessTransport&) = delete;

  std::string name() const override { return "peer"; }
  std::int32_t worker() const override { return process_.worker; }
  std::int32_t workers() const override { return process_.workers; }
  void reserve_arena(std::int64_t bytes) override;
  std::byte* arena() override { return arenas_.own(); }
  std::int64_t arena_bytes() const override { return arenas_.bytes(); }
  Handle post(const Exchange& exchange, Stream& stream) override;
  void wait(Handle handle, Stream& stream) override;
  void poll() override;
  void abort(const std::string& reason) override;
  std::vector<ExchangeRecord> take_records() override;

 private:
  std::vector<Group> groups_of(const Exchange& exchange) const;
  void add_to(std::vector<Group>& groups, const Transfer& transfer, bool send) const;
  Role role_of(const Transfer& transfer, bool send) const;
  void check_order(const Group& group, const Tag& tag);
  void start(Group& group, Posting& posting, const CudaStream& stream);
  void copy(Group& group, const Posting& posting);
  void mail(Group& group, const Posting& posting, const CudaStream& stream);
  std::uint32_t* on_device(std::uint32_t* word) const { return control_.on_device(word); }
  cudaStream_t copy_stream(std::int32_t peer, bool send);
  const CudaStream& own(Stream& stream) const;

  bool is_done(const Posting& posting) const;
  void retire();
  void throw_if_failed();
  void settle();
  void watch(const std::stop_token& stop);
  std::string look();
  std::string overdue(const Posting& posting);
  void mark_streams_failed();
  void leave();

  const PeerProcess process_;
  const std::chrono::milliseconds deadline_;
  ControlBlock control_;
  peer::Arenas arenas_;
  EventPool events_;
  CudaStream admin_;
  DeviceClock clock_;

  std::mutex mutex_;  // guards all below
  std::int64_t next_id_ = 0;
  std::deque<Posting> open_;
  std::vector<ExchangeRecord> records_;
  std::set<std::shared_ptr<StreamFailure>> streams_;
  std::map<std::pair<std::int32_t, bool>, std::unique_ptr<CudaStream>> copy_streams_;
  std::map<std::tuple<std::int32_t, bool, std::int32_t>, std::uint32_t> last_values_;
  std::jthread watchdog_;  // last: it uses everything above
};

void ProcessTransport::reserve_arena(std::int64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    retire();
    LIBRA_CHECK(bytes <= arenas_.bytes() || open_.empty(),
                "worker {} grows its arena while {} is in flight", worker(),
                describe(open_.front().tag));
  }
  arenas_.reserve(bytes);
}

const CudaStream& ProcessTransport::own(Stream& stream) const {
  const CudaStream& cuda = as_cuda(stream);
  if (cuda.device() == process_.device) return cuda;
  throw ConfigError(fmt::format("worker {} is on device {}, its stream on device {}", worker(),
                                process_.device, cuda.device()));
}

// Signals first: a worker says that it is ready before anything of it waits.
Handle ProcessTransport::post(const Exchange& exchange, Stream& stream) {
  check_exchange(exchange, worker(), workers());
  const CudaStream& cuda = own(stream);
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  retire();
  Posting posting;
  posting.tag = posting.record.tag = exchange.tag;
  posting.value = peer::value_of(exchange.tag);
  posting.groups = groups_of(exchange);
  for (const Group& group : posting.groups) check_order(group, exchange.tag);
  posting.id = next_id_++;
  posting.reached = std::make_shared<PooledEvent>(events_);
  streams_.insert(cuda.failure());
  check_cuda(cudaEventRecord(posting.reached->get(), cuda.get()), "cudaEventRecord");
  std::stable_partition(posting.groups.begin(), posting.groups.end(),
                        [](const Group& group) { return group.role == Role::kSignals; });
  for (Group& group : posting.groups) start(group, posting, cuda);
  open_.push_back(std::move(posting));
  return {open_.back().id};
}

std::vector<Group> ProcessTransport::groups_of(const Exchange& exchange) const {
  std::vector<Group> groups;
  for (const Transfer& transfer : exchange.sends) add_to(groups, transfer, true);
  for (const Transfer& transfer : exchange.receives) add_to(groups, transfer, false);
  return groups;
}

void ProcessTransport::add_to(std::vector<Group>& groups, const Transfer& transfer,
                              bool send) const {
  const Role role = role_of(transfer, send);
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
    return group.peer == transfer.peer && group.send == send;
  });
  if (found == groups.end()) {
    groups.push_back({transfer.peer, send, role, {transfer}, nullptr, nullptr, nullptr});
  } else if (found->role == role) {
    found->transfers.push_back(transfer);
  } else {
    throw ConfigError(fmt::format(
        "worker {} and worker {} mix transfers that are pushed and pulled under one tag", worker(),
        transfer.peer));
  }
}

// Both ends come to the same answer: pulled if it leaves an arena, else pushed if it enters one.
Role ProcessTransport::role_of(const Transfer& transfer, bool send) const {
  const bool here = arenas_.holds(transfer.local), there = transfer.peer_arena_offset >= 0;
  const bool from_arena = send ? here : there;
  const bool to_arena = send ? there : here;
  if (from_arena) return send ? Role::kSignals : Role::kCopies;
  if (to_arena) return send ? Role::kCopies : Role::kSignals;
  if (transfer.local.bytes() <= peer::kMailBytes && transfer.local.rows <= 1) return Role::kMails;
  throw ConfigError(fmt::format(
      "worker {} and worker {}: neither end of {} bytes lies in an arena; at most {} may do so",
      worker(), transfer.peer, transfer.local.bytes(), peer::kMailBytes));
}

void ProcessTransport::check_order(const Group& group, const Tag& tag) {
  const std::uint32_t value = peer::value_of(tag);
  std::uint32_t& last = last_values_[{group.peer, group.send, peer::slot_of(tag)}];
  if (value <= last) {
    throw ConfigError(fmt::format(
        "worker {} posts {} after step {}: between processes a tag is posted once and steps count "
        "up",
        worker(), describe(tag), last - 1));
  }
  last = value;
}

void ProcessTransport::start(Group& group, Posting& posting, const CudaStream& stream) {
  const std::int32_t slot = peer::slot_of(posting.tag);
  peer::PairFlags& flags =
      group.send ? control_.flags(worker(), group.peer) : control_.flags(group.peer, worker());
  group.ready = &flags.ready[slot];
  group.done = &flags.done[slot];
  for (const Transfer& transfer : group.transfers) {
    (group.send ? posting.record.bytes_sent : posting.record.bytes_received) +=
        transfer.local.bytes();
  }
  if (group.role == Role::kSignals) {
    enqueue_write(stream.get(), on_device(group.ready), posting.value);
    return;
  }
  group.end = std::make_shared<PooledEvent>(events_);
  group.role == Role::kCopies ? copy(group, posting) : mail(group, posting, stream);
}

void ProcessTransport::copy(Group& group, const Posting& posting) {
  const cudaStream_t stream = copy_stream(group.peer, group.send);
  check_cuda(cudaStreamWaitEvent(stream, posting.reached->get()), "cudaStreamWaitEvent");
  enqueue_wait(stream, on_device(group.ready), posting.value);
  for (const Transfer& transfer : group.transfers) {
    const StridedView there =
        arenas_.at_peer(transfer.peer, transfer.peer_arena_offset, transfer.local.bytes());
    group.send ? enqueue_copy(transfer.local, there, stream)
               : enqueue_copy(there, transfer.local, stream);
  }
  enqueue_write(stream, on_device(group.done), posting.value);
  check_cuda(cudaEventRecord(group.end->get(), stream), "cudaEventRecord");
}

void ProcessTransport::mail(Group& group, const Posting& posting, const CudaStream& stream) {
  const auto letter = static_cast<std::size_t>(posting.tag.step % peer::kMailSlots);
  LIBRA_CHECK(group.transfers.size() == 1, "{} letters to worker {}", group.transfers.size(),
              group.peer);
  const StridedView& local = group.transfers[0].local;
  const auto bytes = static_cast<std::size_t>(local.bytes());
  if (group.send) {
    std::byte* const box = control_.mail(worker(), group.peer).bytes[letter];
    enqueue_host_copy(stream.get(), {local.data, box, bytes});
    enqueue_write(stream.get(), on_device(group.ready), posting.value);
    check_cuda(cudaEventRecord(group.end->get(), stream.get()), "cudaEventRecord");
    return;
  }
  const cudaStream_t lane = copy_stream(group.peer, false);
  check_cuda(cudaStreamWaitEvent(lane, posting.reached->get()), "cudaStreamWaitEvent");
  enqueue_wait(lane, on_device(group.ready), posting.value);
  enqueue_host_copy(lane, {control_.mail(group.peer, worker()).bytes[letter], local.data, bytes});
  check_cuda(cudaEventRecord(group.end->get(), lane), "cudaEventRecord");
}

cudaStream_t ProcessTransport::copy_stream(std::int32_t peer, bool send) {
  std::unique_ptr<CudaStream>& stream = copy_streams_[{peer, send}];
  if (stream == nullptr) stream = std::make_unique<CudaStream>(process_.device);
  return stream->get();
}

void ProcessTransport::wait(Handle handle, Stream& stream) {
  const CudaStream& cuda = own(stream);
  const std::lock_guard lock(mutex_);
  LIBRA_CHECK(handle.id >= 0 && handle.id < next_id_, "worker {} has posted no exchange {}",
              worker(), handle.id);
  throw_if_failed();
  streams_.insert(cuda.failure());
  if (open_.empty() || handle.id < open_.front().id) return;  // long complete
  const Posting& posting = open_[static_cast<std::size_t>(handle.id - open_.front().id)];
  check_cuda(cudaStreamWaitEvent(cuda.get(), posting.reached->get()), "cudaStreamWaitEvent");
  for (const Group& group : posting.groups) {
    if (group.end == nullptr) {
      enqueue_wait(cuda.get(), on_device(group.done), posting.value);
    } else {
      check_cuda(cudaStreamWaitEvent(cuda.get(), group.end->get()), "cudaStreamWaitEvent");
    }
  }
}

bool ProcessTransport::is_done(const Posting& posting) const {
  return has_happened(posting.reached->get()) &&
         std::all_of(posting.groups.begin(), posting.groups.end(), [&](const Group& group) {
           return group.end == nullptr ? peer::has_come(*group.done, posting.value)
                                       : has_happened(group.end->get());
         });
}

// Exchanges that peers copied are noticed by the watchdog, to its millisecond.
void ProcessTransport::retire() {
  while (!open_.empty() && is_done(open_.front())) {
    Posting& posting = open_.front();
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

void ProcessTransport::poll() {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
}

void ProcessTransport::throw_if_failed() {
  if (!control_.failed()) return;
  mark_streams_failed();
  settle();
  throw TransportError(
      fmt::format("worker {} can exchange no more: {}", worker(), control_.failure()));
}

void ProcessTransport::mark_streams_failed() {
  for (const auto& stream : streams_) stream->fail(control_.failure());
}

// Nothing of this process touches the caller's tensors afterwards. The watchdog frees what waits.
void ProcessTransport::settle() {
  for (const auto& [key, stream] : copy_streams_) cudaStreamSynchronize(stream->get());
}

void ProcessTransport::abort(const std::string& reason) {
  control_.fail(fmt::format("worker {} aborted: {}", worker(), reason));
  const std::lock_guard lock(mutex_);
  mark_streams_failed();
  settle();
}

void ProcessTransport::watch(const std::stop_token& stop) {
  cudaSetDevice(process_.device);
  while (!stop.stop_requested()) {
    if (control_.failed()) {
      control_.release_flags();
    } else if (const std::string reason = look(); !reason.empty()) {
      control_.fail(reason);
    }
    if (control_.failed()) {
      const std::unique_lock lock(mutex_, std::try_to_lock);  // or its holder does it
      if (lock.owns_lock()) mark_streams_failed();
    }
    std::this_thread::sleep_for(kWatch);
  }
}

// Why the pool must fail; empty if it need not.
std::string ProcessTransport::look() try {
  const std::lock_guard lock(mutex_);
  retire();
  for (Posting& posting : open_) {
    if (!posting.armed) {
      posting.armed = has_happened(posting.reached->get());
      posting.armed_at = Clock::now();
    }
    if (!posting.armed) break;  // what comes later has not been reached either, as a rule
    if (std::string reason = overdue(posting); !reason.empty()) return reason;
  }
  return {};
} catch (const DeviceError& error) {
  return fmt::format("worker {}: {}", worker(), error.what());
}

std::string ProcessTransport::overdue(const Posting& posting) {
  std::set<std::int32_t> missing;
  for (const Group& group : posting.groups) {
    const bool mailed = group.role == Role::kMails && group.send;
    std::uint32_t* const flag = group.role == Role::kSignals ? group.done : group.ready;
    if (!mailed && !peer::has_come(*flag, posting.value)) missing.insert(group.peer);
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
                                describe(open_.front().tag)));
    }
    settle();
  }
  watchdog_.request_stop();
  watchdog_.join();
  if (control_.failed()) control_.release_flags();
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

}  // namespace

std::unique_ptr<Transport> make_peer_process(const PeerProcess& process,
                                             const TransportOptions& options) {
  check_options(options);
  if (process.workers < 1 || process.worker < 0 || process.worker >= process.workers) {
    throw ConfigError(
        fmt::format("worker {} of {}: workers count from 0 to one less than their "
                    "number",
                    process.worker, process.workers));
  }
  if (process.device < 0 || process.device >= device_count()) {
    throw ConfigError(fmt::format("device {} is not there: this process can use {}", process.device,
                                  device_count()));
  }
  const DeviceGuard guard(process.device);
  return std::make_unique<ProcessTransport>(process, options);
}

}  // namespace libra
