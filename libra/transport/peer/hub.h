// What goes on behind the endpoints of one process: matches halves and enqueues copies. Private to
// this folder.
//
// Threads: any; one mutex guards all. It is held while copies are enqueued, a few microseconds
// each, and never while a device is waited for, except after a failure.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "libra/cuda/cuda_stream.h"
#include "libra/transport/peer/copy_batch.h"
#include "libra/transport/transport.h"

namespace libra::peer {

/// One posted exchange of one worker.
struct Posting {
  Posting(std::int64_t posting_id, const Exchange& posted, EventPool& pool)
      : id(posting_id), exchange(posted), reached(pool) {}

  std::int64_t id;
  Exchange exchange;
  PooledEvent reached;  ///< the stream has come to the post
  std::size_t unmatched = 0;
  std::set<std::int32_t> missing_peers() const;
  std::vector<bool> matched;  ///< by transfer: sends, then receives
  std::vector<std::shared_ptr<CopyBatch>> batches;
  std::chrono::steady_clock::time_point posted_at = std::chrono::steady_clock::now();
};

class Hub {
 public:
  Hub(std::vector<std::int32_t> devices, const TransportOptions& options);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::int32_t workers() const { return static_cast<std::int32_t>(devices_.size()); }
  std::int32_t device(std::int32_t worker) const { return devices_[index(worker)]; }

  Handle post(std::int32_t worker, const Exchange& exchange, const CudaStream& stream);
  void wait(std::int32_t worker, Handle handle, const CudaStream& stream);

  /// Fails every worker and every stream that was used; later causes do not count.
  void fail(const std::string& cause);
  /// Throws the TransportError of a failure, if there was one.
  void poll(std::int32_t worker) const;

  /// Waits for the copies that touch this worker's memory.
  void settle(std::int32_t worker);

  /// The worker posts no more. Fails the others if it, or somebody who waits for it, is not done.
  void leave(std::int32_t worker);

  bool idle(std::int32_t worker) const;
  std::vector<ExchangeRecord> take_records(std::int32_t worker);

 private:
  /// What a device's copies share.
  struct DeviceState {
    explicit DeviceState(std::int32_t device);
    EventPool order_only;
    EventPool timing;
    CudaStream admin;
    DeviceClock clock;
  };
  /// What belongs to one worker.
  struct Lane {
    std::int64_t next_id = 0;
    std::deque<std::shared_ptr<Posting>> open;  ///< in the order of posting
    std::vector<ExchangeRecord> records;
    std::set<std::shared_ptr<StreamFailure>> streams;
    bool left = false;
  };
  struct Half {
    std::int32_t worker = 0;
    std::shared_ptr<Posting> posting;
    std::size_t transfer = 0;
    const Transfer& get() const;
    bool is_send() const { return transfer < posting->exchange.sends.size(); }
  };
  struct Match {
    Half send;
    Half receive;
  };
  /// From, to; then the tag.
  using ChannelKey =
      std::tuple<std::int32_t, std::int32_t, std::int32_t, Phase, std::int32_t, std::int32_t>;

  static std::size_t index(std::int32_t worker) { return static_cast<std::size_t>(worker); }
  DeviceState& state(std::int32_t worker) { return *states_.at(device(worker)); }
  std::shared_ptr<Posting> open_posting(std::int32_t worker, const Exchange& exchange,
                                        const CudaStream& stream);
  bool offer(const Half& half, std::vector<Match>& matches);
  void enqueue(const std::vector<Match>& matches);
  cudaStream_t copy_stream(std::int32_t from, std::int32_t to);
  void retire(std::int32_t worker);
  void await_peers(std::int32_t worker, const Posting& posting, std::unique_lock<std::mutex>& lock);
  void fail_locked(const std::string& cause);
  void throw_if_failed(std::int32_t worker) const;
  std::string somebody_waits_for(std::int32_t worker) const;

  const std::vector<std::int32_t> devices_;  // by worker
  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int32_t, std::unique_ptr<DeviceState>> states_;  // by device
  std::map<std::pair<std::int32_t, std::int32_t>, std::unique_ptr<BareStream>> copy_streams_;
  std::map<ChannelKey, std::deque<Half>>
      waiting_;  // halves of one kind, whose others have not come
  std::vector<Lane> lanes_;
  std::string failure_;  // empty: none
};

}  // namespace libra::peer
