#include "libra/transport/peer/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"
#include "libra/cuda/strided_copy.h"
#include "libra/transport/messages.h"

namespace libra::peer {
namespace {

using Clock = std::chrono::steady_clock;

// What nobody takes is kept up to here.
constexpr std::size_t kMostRecords = std::size_t{1} << 16;

std::int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Of two ordered devices: lets the first reach the second's memory.
void enable_access(std::int32_t device, std::int32_t peer) {
  int reachable = 0;
  check_cuda(cudaDeviceCanAccessPeer(&reachable, device, peer), "cudaDeviceCanAccessPeer");
  if (reachable == 0) {
    throw ConfigError(fmt::format(
        "device {} cannot reach the memory of device {}: use the transport nccl between them",
        device, peer));
  }
  const DeviceGuard guard(device);
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check_cuda(status, "cudaDeviceEnablePeerAccess");
}

bool is_done(const Posting& posting) {
  return posting.unmatched == 0 && has_happened(posting.reached.get()) &&
         std::all_of(posting.batches.begin(), posting.batches.end(),
                     [](const auto& batch) { return has_happened(batch->end.get()); });
}

std::int64_t total_bytes(const std::vector<Transfer>& transfers) {
  std::int64_t bytes = 0;
  for (const Transfer& transfer : transfers) bytes += transfer.local.bytes();
  return bytes;
}

ExchangeRecord record_of(const Posting& posting) {
  ExchangeRecord record{posting.exchange.tag, 0, 0, total_bytes(posting.exchange.sends),
                        total_bytes(posting.exchange.receives)};
  record.begin_ns = record.end_ns = nanoseconds(posting.posted_at);
  for (const auto& batch : posting.batches) {
    const std::int64_t begin = batch->clock.wall_ns(batch->begin.get());
    const bool first = batch == posting.batches.front();
    record.begin_ns = first ? begin : std::min(record.begin_ns, begin);
    record.end_ns =
        std::max({record.end_ns, record.begin_ns, batch->clock.wall_ns(batch->end.get())});
  }
  return record;
}

}  // namespace

std::set<std::int32_t> Posting::missing_peers() const {
  std::set<std::int32_t> peers;
  for (std::size_t i = 0; i < matched.size(); ++i) {
    if (matched[i]) continue;
    const std::size_t sends = exchange.sends.size();
    peers.insert(i < sends ? exchange.sends[i].peer : exchange.receives[i - sends].peer);
  }
  return peers;
}

const Transfer& Hub::Half::get() const {
  const Exchange& exchange = posting->exchange;
  return is_send() ? exchange.sends[transfer] : exchange.receives[transfer - exchange.sends.size()];
}

Hub::DeviceState::DeviceState(std::int32_t device)
    : order_only(device, EventPool::Kind::kOrderOnly),
      timing(device, EventPool::Kind::kTiming),
      admin(device),
      clock(device, admin.get()) {}

Hub::Hub(std::vector<std::int32_t> devices, const TransportOptions& options)
    : devices_(std::move(devices)), deadline_(options.deadline), lanes_(devices_.size()) {
  const std::set<std::int32_t> used(devices_.begin(), devices_.end());
  for (const std::int32_t device : used) {
    for (const std::int32_t peer : used) {
      if (peer != device) enable_access(device, peer);
    }
    states_.emplace(device, std::make_unique<DeviceState>(device));
  }
}

// Postings hold events of the pools in states_.
Hub::~Hub() {
  copy_streams_.clear();
  waiting_.clear();
  lanes_.clear();
}

Handle Hub::post(std::int32_t worker, const Exchange& exchange, const CudaStream& stream) {
  const std::lock_guard lock(mutex_);
  throw_if_failed(worker);
  retire(worker);
  const std::shared_ptr<Posting> posting = open_posting(worker, exchange, stream);
  std::vector<Match> matches;
  matches.reserve(posting->matched.size());
  for (std::size_t i = 0; i < posting->matched.size(); ++i) {
    if (!offer({worker, posting, i}, matches)) return {posting->id};
  }
  enqueue(matches);
  if (!matches.empty()) changed_.notify_all();
  return {posting->id};
}

std::shared_ptr<Posting> Hub::open_posting(std::int32_t worker, const Exchange& exchange,
                                           const CudaStream& stream) {
  Lane& lane = lanes_[index(worker)];
  auto posting = std::make_shared<Posting>(lane.next_id++, exchange, state(worker).order_only);
  posting->unmatched = exchange.sends.size() + exchange.receives.size();
  posting->matched.resize(posting->unmatched);
  lane.open.push_back(posting);
  lane.streams.insert(stream.failure());
  check_cuda(cudaEventRecord(posting->reached.get(), stream.get()), "cudaEventRecord");
  return posting;
}

// False after a failure.
bool Hub::offer(const Half& half, std::vector<Match>& matches) {
  const std::int32_t peer = half.get().peer;
  const Tag& tag = half.posting->exchange.tag;
  const bool is_send = half.is_send();
  const ChannelKey key{is_send ? half.worker : peer,
                       is_send ? peer : half.worker,
                       tag.step,
                       tag.phase,
                       tag.chunk,
                       tag.round};
  std::deque<Half>& queue = waiting_[key];
  if (queue.empty() || queue.front().is_send() == is_send) {
    queue.push_back(half);
    if (lanes_[index(peer)].left) {
      fail_locked(fmt::format("worker {} needs worker {} in {}, which has left", half.worker, peer,
                              describe(tag)));
    }
    return failure_.empty();
  }
  const Half other = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) waiting_.erase(key);
  const Match match = is_send ? Match{half, other} : Match{other, half};
  const std::int64_t sent = match.send.get().local.bytes();
  const std::int64_t expected = match.receive.get().local.bytes();
  if (sent != expected) {
    fail_locked(mismatch_message(match.send.worker, sent, match.receive.worker, expected, tag));
    return false;
  }
  matches.push_back(match);
  return true;
}

// One batch per pair of postings and direction: the matches of one post that have both in common
// follow each other in the lists, as a rule.
void Hub::enqueue(const std::vector<Match>& matches) {
  const auto same_pair = [](const Match& a, const Match& b) {
    return a.send.posting == b.send.posting && a.receive.posting == b.receive.posting;
  };
  for (std::size_t first = 0; first < matches.size();) {
    const auto& [send, receive] = matches[first];
    cudaStream_t stream = copy_stream(send.worker, receive.worker);
    DeviceState& from = state(send.worker);
    const auto batch = std::make_shared<CopyBatch>(from.timing, from.clock);
    for (const Half* half : {&send, &receive}) {
      check_cuda(cudaStreamWaitEvent(stream, half->posting->reached.get()), "cudaStreamWaitEvent");
      half->posting->batches.push_back(batch);
    }
    check_cuda(cudaEventRecord(batch->begin.get(), stream), "cudaEventRecord");
    std::size_t next = first;
    for (; next < matches.size() && same_pair(matches[first], matches[next]); ++next) {
      const Match& match = matches[next];
      enqueue_copy(match.send.get().local, match.receive.get().local, stream);
      for (const Half* half : {&match.send, &match.receive}) {
        half->posting->matched[half->transfer] = true;
        --half->posting->unmatched;
      }
    }
    check_cuda(cudaEventRecord(batch->end.get(), stream), "cudaEventRecord");
    first = next;
  }
}

cudaStream_t Hub::copy_stream(std::int32_t from, std::int32_t to) {
  std::unique_ptr<BareStream>& stream = copy_streams_[{from, to}];
  if (stream == nullptr) stream = std::make_unique<BareStream>(device(from));
  return stream->get();
}

void Hub::wait(std::int32_t worker, Handle handle, const CudaStream& stream) {
  std::unique_lock lock(mutex_);
  Lane& lane = lanes_[index(worker)];
  LIBRA_CHECK(handle.id >= 0 && handle.id < lane.next_id, "worker {} has posted no exchange {}",
              worker, handle.id);
  lane.streams.insert(stream.failure());
  if (lane.open.empty() || handle.id < lane.open.front()->id) return;  // long complete
  const std::shared_ptr<Posting> posting =
      lane.open[static_cast<std::size_t>(handle.id - lane.open.front()->id)];
  await_peers(worker, *posting, lock);
  check_cuda(cudaStreamWaitEvent(stream.get(), posting->reached.get()), "cudaStreamWaitEvent");
  for (const auto& batch : posting->batches) {
    check_cuda(cudaStreamWaitEvent(stream.get(), batch->end.get()), "cudaStreamWaitEvent");
  }
}

void Hub::await_peers(std::int32_t worker, const Posting& posting,
                      std::unique_lock<std::mutex>& lock) {
  const auto settled = [&] { return posting.unmatched == 0 || !failure_.empty(); };
  if (!changed_.wait_until(lock, posting.posted_at + deadline_, settled)) {
    fail_locked(overdue_message(worker, deadline_, posting.missing_peers(), posting.exchange.tag));
  }
  throw_if_failed(worker);
}

void Hub::fail(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  fail_locked(cause);
}

void Hub::fail_locked(const std::string& cause) {
  if (!failure_.empty()) return;
  failure_ = cause;
  for (std::size_t worker = 0; worker < lanes_.size(); ++worker) {
    const std::string message = failed_message(static_cast<std::int32_t>(worker), cause);
    for (const auto& stream : lanes_[worker].streams) stream->fail(message);
  }
  waiting_.clear();
  changed_.notify_all();
}

void Hub::poll(std::int32_t worker) const {
  const std::lock_guard lock(mutex_);
  throw_if_failed(worker);
}

void Hub::throw_if_failed(std::int32_t worker) const {
  if (failure_.empty()) return;
  throw TransportError(failed_message(worker, failure_));
}

void Hub::settle(std::int32_t worker) {
  const std::lock_guard lock(mutex_);
  for (const auto& [pair, stream] : copy_streams_) {
    if (pair.first == worker || pair.second == worker) cudaStreamSynchronize(stream->get());
  }
}

std::string Hub::somebody_waits_for(std::int32_t worker) const {
  for (const auto& [key, halves] : waiting_) {
    if (halves.front().get().peer != worker) continue;
    return fmt::format("worker {} waits for it in {}", halves.front().worker,
                       describe(halves.front().posting->exchange.tag));
  }
  return {};
}

void Hub::leave(std::int32_t worker) {
  {
    const std::lock_guard lock(mutex_);
    Lane& lane = lanes_[index(worker)];
    lane.left = true;
    for (const auto& posting : lane.open) {
      if (posting->unmatched == 0) continue;
      fail_locked(fmt::format("worker {} left before {} was complete", worker,
                              describe(posting->exchange.tag)));
    }
    if (const std::string waiting = somebody_waits_for(worker); !waiting.empty()) {
      fail_locked(fmt::format("worker {} left while {}", worker, waiting));
    }
  }
  settle(worker);
}

bool Hub::idle(std::int32_t worker) const {
  const std::lock_guard lock(mutex_);
  const auto& open = lanes_[index(worker)].open;
  return std::all_of(open.begin(), open.end(),
                     [](const auto& posting) { return is_done(*posting); });
}

void Hub::retire(std::int32_t worker) {
  Lane& lane = lanes_[index(worker)];
  while (!lane.open.empty() && is_done(*lane.open.front())) {
    if (lane.records.size() < kMostRecords) lane.records.push_back(record_of(*lane.open.front()));
    lane.open.pop_front();
  }
}

std::vector<ExchangeRecord> Hub::take_records(std::int32_t worker) {
  const std::lock_guard lock(mutex_);
  retire(worker);
  return std::exchange(lanes_[index(worker)].records, {});
}

}  // namespace libra::peer
