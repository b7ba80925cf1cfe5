#include "libra/transport/nccl/nccl_transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/messages.h"
#include "libra/transport/nccl/communicator.h"
#include "libra/transport/nccl/staging.h"

namespace libra {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWatch{2};
constexpr std::chrono::microseconds kPause{50};
constexpr std::size_t kMostRecords = std::size_t{1} << 16;
constexpr std::size_t kMostLaunched = 64;  // exchanges in flight: some layers' worth

struct Posting {
  std::int64_t id = 0;
  Exchange exchange;
  std::shared_ptr<PooledEvent> reached;  // the stream has come to the post
  std::shared_ptr<PooledEvent> begin;    // of its group; null until it has been launched
  std::shared_ptr<PooledEvent> end;
  bool armed = false;  // all streams of the group have come to it, and the deadline counts
  Clock::time_point armed_at;
};

/// What the workers of one process tell each other. Workers of others learn by their deadline.
class FailureBoard {
 public:
  void write(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
  }
  std::string read() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  mutable std::mutex mutex_;
  std::string reason_;
};

std::int64_t bytes_of(const std::vector<Transfer>& transfers) {
  std::int64_t bytes = 0;
  for (const Transfer& transfer : transfers) bytes += transfer.local.bytes();
  return bytes;
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(const NcclProcess& process, const TransportOptions& options,
                std::shared_ptr<FailureBoard> board)
      : board_(std::move(board)),
        worker_(process.worker),
        workers_(process.workers),
        device_(process.device),
        deadline_(options.deadline),
        comm_(process, options.deadline),
        stream_(process.device),
        events_(process.device, EventPool::Kind::kTiming),
        clock_(process.device, stream_.get()),
        sent_(process.device),
        received_(process.device),
        watchdog_([this](const std::stop_token& stop) { watch(stop); }) {
    const std::lock_guard lock(mutex_);
    comm_.connect(process.peers);
  }
  ~NcclTransport() override { leave(); }
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  std::string name() const override { return "nccl"; }
  bool posts_ahead() const override { return false; }  // groups run one after the other
  std::int32_t worker() const override { return worker_; }
  std::int32_t workers() const override { return workers_; }
  void reserve_arena(std::int64_t bytes) override;
  std::byte* arena() override { return arena_.get(); }
  std::int64_t arena_bytes() const override { return arena_bytes_; }
  Handle post(const Exchange& exchange, Stream& stream) override;
  void wait(Handle handle, Stream& stream) override;
  void poll() override;
  void abort(const std::string& reason) override;
  std::vector<ExchangeRecord> take_records() override;

 private:
  const CudaStream& own(Stream& stream) const;
  void await_room();
  void launch();
  void run_group(const std::vector<Posting*>& group);
  std::vector<const Transfer*> all_of(const std::vector<Posting*>& group,
                                      std::vector<Transfer> Exchange::*list) const;
  void retire();
  void throw_if_failed() const;
  void fail_locked(const std::string& reason);
  void watch(const std::stop_token& stop);
  std::string look();
  std::set<std::int32_t> peers_of(const Exchange& exchange) const;
  const Posting& oldest_with_peers(const Posting& otherwise) const;
  std::string in_words(const std::string& error) const;
  void leave();

  const std::shared_ptr<FailureBoard> board_;
  const std::int32_t worker_, workers_, device_;
  const std::chrono::milliseconds deadline_;
  nccl::Communicator comm_;
  CudaStream stream_;  // NCCL's work, in order
  EventPool events_;
  DeviceClock clock_;
  nccl::Staging sent_, received_;
  std::shared_ptr<std::byte> arena_;
  std::int64_t arena_bytes_ = 0;

  std::mutex mutex_;  // guards all below
  std::int64_t next_id_ = 0;
  std::deque<Posting> open_;
  std::size_t launched_ = 0;  // of open_, from the front
  std::vector<ExchangeRecord> records_;
  std::set<std::shared_ptr<StreamFailure>> streams_;
  std::string failure_;
  std::jthread watchdog_;  // last: it uses everything above
};

void NcclTransport::reserve_arena(std::int64_t bytes) {
  if (bytes <= arena_bytes_) return;
  {
    const std::lock_guard lock(mutex_);
    retire();
    LIBRA_CHECK(open_.empty(), "worker {} grows its arena while {} is in flight", worker_,
                describe(open_.front().exchange.tag));
  }
  arena_.reset();
  arena_bytes_ = 0;
  arena_ = allocate_device(device_, bytes);
  arena_bytes_ = bytes;
}

const CudaStream& NcclTransport::own(Stream& stream) const {
  const CudaStream& cuda = as_cuda(stream);
  if (cuda.device() == device_) return cuda;
  throw ConfigError(fmt::format("worker {} is on device {}, its stream on device {}", worker_,
                                device_, cuda.device()));
}

// What is enqueued on the caller's stream waits once its launch queue is full: not under the lock,
// which the watchdog needs.
Handle NcclTransport::post(const Exchange& exchange, Stream& stream) {
  check_exchange(exchange, worker_, workers_);
  const CudaStream& cuda = own(stream);
  await_room();
  Posting posting;
  posting.exchange = exchange;
  {
    const std::lock_guard lock(mutex_);
    streams_.insert(cuda.failure());
    posting.reached = std::make_shared<PooledEvent>(events_);
  }
  check_cuda(cudaEventRecord(posting.reached->get(), cuda.get()), "cudaEventRecord");
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  posting.id = next_id_++;
  open_.push_back(std::move(posting));
  const Handle handle{open_.back().id};
  if (!exchange.more) launch();
  return handle;
}

// Keeps the launch queue of NCCL's stream from filling up, which would hold up a launch under the
// lock.
void NcclTransport::await_room() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      throw_if_failed();
      retire();
      if (launched_ < kMostLaunched) return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

// What was held back belongs to one tag, the last one's.
void NcclTransport::launch() {
  std::vector<Posting*> group;
  for (; launched_ < open_.size(); ++launched_) group.push_back(&open_[launched_]);
  if (group.empty()) return;
  const auto begin = std::make_shared<PooledEvent>(events_);
  const auto end = std::make_shared<PooledEvent>(events_);
  for (Posting* posting : group) {
    posting->begin = begin;
    posting->end = end;
    check_cuda(cudaStreamWaitEvent(stream_.get(), posting->reached->get()), "cudaStreamWaitEvent");
  }
  check_cuda(cudaEventRecord(begin->get(), stream_.get()), "cudaEventRecord");
  try {
    run_group(group);
  } catch (const TransportError& error) {
    fail_locked(in_words(error.what()));
    throw_if_failed();
  }
  check_cuda(cudaEventRecord(end->get(), stream_.get()), "cudaEventRecord");
}

void NcclTransport::run_group(const std::vector<Posting*>& group) {
  cudaStream_t stream = stream_.get();
  const auto out = sent_.blocks_of(all_of(group, &Exchange::sends), stream);
  const auto in = received_.blocks_of(all_of(group, &Exchange::receives), stream);
  if (out.empty() && in.empty()) return;
  for (const nccl::Block& block : out) nccl::pack(block, stream);
  const auto size = [](const nccl::Block& block) { return static_cast<std::size_t>(block.bytes); };
  comm_.finish(ncclGroupStart(), "ncclGroupStart");
  for (const nccl::Block& block : out) {
    ncclSend(block.data, size(block), ncclInt8, block.peer, comm_.get(), stream);
  }
  for (const nccl::Block& block : in) {
    ncclRecv(block.data, size(block), ncclInt8, block.peer, comm_.get(), stream);
  }
  comm_.finish(ncclGroupEnd(), "ncclGroupEnd");
  for (const nccl::Block& block : in) nccl::unpack(block, stream);
}

std::vector<const Transfer*> NcclTransport::all_of(const std::vector<Posting*>& group,
                                                   std::vector<Transfer> Exchange::*list) const {
  std::vector<const Transfer*> transfers;
  for (const Posting* posting : group) {
    for (const Transfer& transfer : posting->exchange.*list) transfers.push_back(&transfer);
  }
  return transfers;
}

void NcclTransport::wait(Handle handle, Stream& stream) {
  const CudaStream& cuda = own(stream);
  std::shared_ptr<PooledEvent> end;
  {
    const std::lock_guard lock(mutex_);
    LIBRA_CHECK(handle.id >= 0 && handle.id < next_id_, "worker {} has posted no exchange {}",
                worker_, handle.id);
    throw_if_failed();
    streams_.insert(cuda.failure());
    if (open_.empty() || handle.id < open_.front().id) return;  // long complete
    const Posting& posting = open_[static_cast<std::size_t>(handle.id - open_.front().id)];
    if (posting.end == nullptr) {
      throw ConfigError(fmt::format("worker {} waits for {} before it has posted the rest of it",
                                    worker_, describe(posting.exchange.tag)));
    }
    end = posting.end;
  }
  check_cuda(cudaStreamWaitEvent(cuda.get(), end->get()), "cudaStreamWaitEvent");
  const std::lock_guard lock(mutex_);  // which the events' pool needs
  end.reset();
}

void NcclTransport::retire() {
  while (launched_ > 0 && has_happened(open_.front().end->get())) {
    const Posting& posting = open_.front();
    const Exchange& exchange = posting.exchange;
    const std::int64_t begin = clock_.wall_ns(posting.begin->get());
    const std::int64_t end = std::max(begin, clock_.wall_ns(posting.end->get()));
    if (records_.size() < kMostRecords) {
      records_.push_back(
          {exchange.tag, begin, end, bytes_of(exchange.sends), bytes_of(exchange.receives)});
    }
    open_.pop_front();
    --launched_;
  }
}

std::vector<ExchangeRecord> NcclTransport::take_records() {
  const std::lock_guard lock(mutex_);
  retire();
  return std::exchange(records_, {});
}

void NcclTransport::poll() {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
}

void NcclTransport::throw_if_failed() const {
  if (failure_.empty()) return;
  throw TransportError(failed_message(worker_, failure_));
}

// The communicator's kernels end, so the stream does, and nothing touches the caller's tensors.
void NcclTransport::fail_locked(const std::string& reason) {
  if (!failure_.empty()) return;
  failure_ = reason;
  board_->write(reason);
  for (const auto& stream : streams_) stream->fail(failed_message(worker_, reason));
  comm_.abort();
  cudaStreamSynchronize(stream_.get());
}

void NcclTransport::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  fail_locked(fmt::format("worker {} aborted: {}", worker_, reason));
}

void NcclTransport::watch(const std::stop_token& stop) {
  cudaSetDevice(device_);
  while (!stop.stop_requested()) {
    {
      const std::lock_guard lock(mutex_);
      if (const std::string reason = look(); !reason.empty()) fail_locked(reason);
    }
    std::this_thread::sleep_for(kWatch);
  }
}

// Why the exchange must end; empty if it need not.
std::string NcclTransport::look() try {
  if (!failure_.empty()) return {};
  if (std::string reason = board_->read(); !reason.empty()) return reason;
  const std::string error = comm_.async_error();
  retire();
  if (!error.empty()) return in_words(error);
  for (std::size_t i = 0; i < launched_; ++i) {
    Posting& posting = open_[i];
    if (!posting.armed) {
      posting.armed = has_happened(posting.begin->get());
      posting.armed_at = Clock::now();
    }
    if (!posting.armed) break;
    if (Clock::now() < posting.armed_at + deadline_) continue;
    const Exchange& exchange = oldest_with_peers(posting).exchange;
    return overdue_message(worker_, deadline_, peers_of(exchange), exchange.tag);
  }
  return {};
} catch (const DeviceError& error) {
  return fmt::format("worker {}: {}", worker_, error.what());
}

std::set<std::int32_t> NcclTransport::peers_of(const Exchange& exchange) const {
  std::set<std::int32_t> peers;
  for (const Transfer& transfer : exchange.sends) peers.insert(transfer.peer);
  for (const Transfer& transfer : exchange.receives) peers.insert(transfer.peer);
  return peers;
}

// An exchange can be empty, and be held up by another of its group.
const Posting& NcclTransport::oldest_with_peers(const Posting& otherwise) const {
  const auto found = std::find_if(open_.begin(), open_.end(), [](const Posting& posting) {
    return !posting.exchange.sends.empty() || !posting.exchange.receives.empty();
  });
  return found == open_.end() ? otherwise : *found;
}

// NCCL does not say where an error is, nor with whom: in the oldest exchange that is not complete.
std::string NcclTransport::in_words(const std::string& error) const {
  if (open_.empty()) return error;
  const Exchange& exchange = oldest_with_peers(open_.front()).exchange;
  const std::set<std::int32_t> peers = peers_of(exchange);
  if (peers.empty()) return error;
  return fmt::format("{}, with worker{} {} in {}", error, peers.size() > 1 ? "s" : "",
                     fmt::join(peers, ", "), describe(exchange.tag));
}

void NcclTransport::leave() {
  {
    const std::lock_guard lock(mutex_);
    retire();
    if (!open_.empty()) {
      fail_locked(fmt::format("worker {} left before {} was complete", worker_,
                              describe(open_.front().exchange.tag)));
    }
  }
  watchdog_.request_stop();
  watchdog_.join();
  open_.clear();
}

}  // namespace

namespace {

// All others if none are named.
std::vector<std::int32_t> peers_of(const NcclProcess& process) {
  std::vector<std::int32_t> others;
  for (std::int32_t worker = 0; worker < process.workers; ++worker) {
    if (worker != process.worker) others.push_back(worker);
  }
  if (process.peers.empty()) return others;
  for (const std::int32_t peer : process.peers) {
    if (std::count(process.peers.begin(), process.peers.end(), peer) == 1 &&
        std::find(others.begin(), others.end(), peer) != others.end()) {
      continue;
    }
    throw ConfigError(
        fmt::format("worker {} cannot have worker {} for a peer: each of the others, 0 to {}, at "
                    "most once",
                    process.worker, peer, process.workers - 1));
  }
  return process.peers;
}

std::unique_ptr<Transport> make_endpoint(NcclProcess process, const TransportOptions& options,
                                         const std::shared_ptr<FailureBoard>& board) {
  check_options(options);
  if (process.device < 0 || process.device >= device_count()) {
    throw ConfigError(fmt::format("device {} is not there: this process can use {}", process.device,
                                  device_count()));
  }
  process.peers = peers_of(process);
  const DeviceGuard guard(process.device);
  return std::make_unique<NcclTransport>(process, options, board);
}

}  // namespace

NcclId make_nccl_id() {
  ncclUniqueId id;
  if (const ncclResult_t status = ncclGetUniqueId(&id); status != ncclSuccess) {
    throw TransportError(fmt::format("NCCL cannot start: {}", ncclGetErrorString(status)));
  }
  NcclId bytes;
  std::memcpy(bytes.data(), id.internal, bytes.size());
  return bytes;
}

std::unique_ptr<Transport> make_nccl_transport(const NcclProcess& process,
                                               const TransportOptions& options) {
  return make_endpoint(process, options, std::make_shared<FailureBoard>());
}

std::vector<std::unique_ptr<Transport>> make_nccl_group(const std::vector<std::int32_t>& devices,
                                                        const TransportOptions& options) {
  if (devices.empty()) throw ConfigError("a group of 0 workers: at least 1");
  if (std::set<std::int32_t>(devices.begin(), devices.end()).size() != devices.size()) {
    throw ConfigError("NCCL takes one worker per GPU, and a device is given twice");
  }
  const NcclId id = make_nccl_id();
  const auto board = std::make_shared<FailureBoard>();
  const auto workers = static_cast<std::int32_t>(devices.size());
  std::vector<std::unique_ptr<Transport>> endpoints(devices.size());
  std::vector<std::exception_ptr> errors(devices.size());
  std::vector<std::jthread> threads;  // all have to come before one returns
  threads.reserve(devices.size());
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      try {
        endpoints[at(worker)] =
            make_endpoint({id, worker, workers, devices[at(worker)]}, options, board);
      } catch (...) {
        errors[at(worker)] = std::current_exception();
      }
    });
  }
  threads.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return endpoints;
}

}  // namespace libra
