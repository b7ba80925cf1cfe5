#include "libra/transport/peer/process_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/stream_flags.h"
#include "libra/cuda/strided_copy.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/messages.h"

namespace libra::peer {
namespace {

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

}  // namespace

ProcessTransport::ProcessTransport(const PeerProcess& process, const TransportOptions& options)
    : process_(process),
      deadline_(options.deadline),
      control_(process.pool, process.worker, process.workers, options.deadline),
      arenas_(control_, process.worker, process.device),
      events_(process.device, EventPool::Kind::kTiming),
      admin_(process.device),
      clock_(process.device, admin_.get()),
      watchdog_([this](const std::stop_token& stop) { watch(stop); }) {}

void ProcessTransport::reserve_arena(std::int64_t bytes) {
  throw_if_failed();
  {
    const std::lock_guard lock(mutex_);
    retire();
    LIBRA_CHECK(bytes <= arenas_.bytes() || open_.empty() || control_.failed(),
                "worker {} grows its arena while {} is in flight", worker(),
                describe(open_.front()->tag));
  }
  arenas_.reserve(bytes);
}

const CudaStream& ProcessTransport::own(Stream& stream) const {
  const CudaStream& cuda = as_cuda(stream);
  if (cuda.device() == process_.device) return cuda;
  throw ConfigError(fmt::format("worker {} is on device {}, its stream on device {}", worker(),
                                process_.device, cuda.device()));
}

Handle ProcessTransport::post(const Exchange& exchange, Stream& stream) {
  check_exchange(exchange, worker(), workers());
  const CudaStream& cuda = own(stream);
  throw_if_failed();
  remember(cuda);
  Shared posting = open(exchange);
  enqueue(*posting, cuda);
  const Handle handle{posting->id};
  let_go(posting);
  return handle;
}

// From here on the watchdog sees it.
ProcessTransport::Shared ProcessTransport::open(const Exchange& exchange) {
  const std::lock_guard lock(mutex_);
  retire();
  auto posting = std::make_shared<ProcessPosting>();
  posting->tag = posting->record.tag = exchange.tag;
  posting->value = value_of(exchange.tag);
  posting->groups = groups_of(exchange, arenas_, worker());
  for (const Group& group : posting->groups) check_order(group, exchange.tag);
  posting->id = next_id_++;
  posting->reached = std::make_shared<PooledEvent>(events_);
  std::stable_sort(posting->groups.begin(), posting->groups.end(),
                   [this](const Group& a, const Group& b) { return turn_of(a) < turn_of(b); });
  for (Group& group : posting->groups) describe_group(group, *posting);
  open_.push_back(posting);
  return posting;
}

// Signals come first. Then the peers after this worker, so that not all copy to the same one.
std::pair<bool, std::int32_t> ProcessTransport::turn_of(const Group& group) const {
  return {group.role != Role::kSignals, (group.peer - worker() + workers()) % workers()};
}

void ProcessTransport::check_order(const Group& group, const Tag& tag) {
  const std::uint32_t value = value_of(tag);
  std::uint32_t& last = last_values_[{group.peer, group.send, slot_of(tag)}];
  if (value <= last) {
    throw ConfigError(fmt::format(
        "worker {} posts {} after step {}: between processes a tag is posted once and steps count "
        "up",
        worker(), describe(tag), last - 1));
  }
  last = value;
}

void ProcessTransport::describe_group(Group& group, ProcessPosting& posting) {
  const std::int32_t slot = slot_of(posting.tag);
  PairFlags& flags =
      group.send ? control_.flags(worker(), group.peer) : control_.flags(group.peer, worker());
  group.ready = &flags.ready[slot];
  group.done = &flags.done[slot];
  if (group.role != Role::kSignals) group.end = std::make_shared<PooledEvent>(events_);
  for (const Transfer& transfer : group.transfers) {
    (group.send ? posting.record.bytes_sent : posting.record.bytes_received) +=
        transfer.local.bytes();
  }
}

// A worker says that it is ready before anything of it waits.
void ProcessTransport::enqueue(ProcessPosting& posting, const CudaStream& stream) {
  check_cuda(cudaEventRecord(posting.reached->get(), stream.get()), "cudaEventRecord");
  {
    const std::lock_guard lock(mutex_);
    posting.begun = true;
  }
  for (const Group& group : posting.groups) {
    if (group.role == Role::kSignals) {
      enqueue_write(stream.get(), on_device(group.ready), posting.value);
    } else if (group.role == Role::kCopies) {
      copy(group, posting);
    } else {
      mail(group, posting, stream);
    }
  }
  const std::lock_guard lock(mutex_);
  posting.enqueued = true;
}

void ProcessTransport::copy(const Group& group, const ProcessPosting& posting) {
  cudaStream_t stream = stream_of(lane_of(posting.tag, group.send));
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

void ProcessTransport::mail(const Group& group, const ProcessPosting& posting,
                            const CudaStream& stream) {
  const auto letter = static_cast<std::size_t>(posting.tag.step % kMailSlots);
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
  cudaStream_t lane = stream_of(lane_of(posting.tag, false));
  check_cuda(cudaStreamWaitEvent(lane, posting.reached->get()), "cudaStreamWaitEvent");
  enqueue_wait(lane, on_device(group.ready), posting.value);
  enqueue_host_copy(lane, {control_.mail(group.peer, worker()).bytes[letter], local.data, bytes});
  check_cuda(cudaEventRecord(group.end->get(), lane), "cudaEventRecord");
}

cudaStream_t ProcessTransport::stream_of(CopyLane lane) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = lanes_.find(lane); found != lanes_.end()) return found->second->get();
  }
  auto made = std::make_unique<BareStream>(process_.device);
  const std::lock_guard lock(mutex_);
  return lanes_.emplace(lane, std::move(made)).first->second->get();
}

// A failure that comes meanwhile is not missed: the stream learns of it here, or from the watchdog.
void ProcessTransport::remember(const CudaStream& stream) {
  const std::lock_guard lock(streams_mutex_);
  streams_.insert(stream.failure());
  if (control_.failed()) stream.failure()->fail(failed_message(worker(), control_.failure()));
}

// Null if it is long complete.
ProcessTransport::Shared ProcessTransport::awaited(Handle handle) {
  const std::lock_guard lock(mutex_);
  LIBRA_CHECK(handle.id >= 0 && handle.id < next_id_, "worker {} has posted no exchange {}",
              worker(), handle.id);
  if (open_.empty() || handle.id < open_.front()->id) return nullptr;
  return open_[static_cast<std::size_t>(handle.id - open_.front()->id)];
}

void ProcessTransport::wait(Handle handle, Stream& stream) {
  const CudaStream& cuda = own(stream);
  throw_if_failed();
  remember(cuda);
  Shared posting = awaited(handle);
  if (posting == nullptr) return;
  check_cuda(cudaStreamWaitEvent(cuda.get(), posting->reached->get()), "cudaStreamWaitEvent");
  for (const Group& group : posting->groups) {
    if (group.end == nullptr) {
      enqueue_wait(cuda.get(), on_device(group.done), posting->value);
    } else {
      check_cuda(cudaStreamWaitEvent(cuda.get(), group.end->get()), "cudaStreamWaitEvent");
    }
  }
  let_go(posting);
}

// Its events go back to their pool with the last who holds it.
void ProcessTransport::let_go(Shared& posting) {
  const std::lock_guard lock(mutex_);
  posting.reset();
}

}  // namespace libra::peer
