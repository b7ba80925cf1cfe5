// One process's end of an exchange by copy engines (peer_process.h). Private to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "libra/cuda/cuda_stream.h"
#include "libra/transport/peer/arenas.h"
#include "libra/transport/peer/control_block.h"
#include "libra/transport/peer/peer_process.h"
#include "libra/transport/peer/process_posting.h"

namespace libra::peer {

class ProcessTransport final : public Transport {
 public:
  /// Returns when all workers of the pool have come here.
  ProcessTransport(const PeerProcess& process, const TransportOptions& options);
  ~ProcessTransport() override { leave(); }
  ProcessTransport(const ProcessTransport&) = delete;
  ProcessTransport& operator=(const ProcessTransport&) = delete;

  std::string name() const override { return "peer"; }
  bool posts_ahead() const override { return !process_.one_queue; }
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
  using Shared = std::shared_ptr<ProcessPosting>;

  Shared open(const Exchange& exchange);
  std::pair<bool, std::int32_t> turn_of(const Group& group) const;
  void check_order(const Group& group, const Tag& tag);
  void describe_group(Group& group, ProcessPosting& posting);
  void enqueue(ProcessPosting& posting, const CudaStream& stream);
  void copy(const Group& group, const ProcessPosting& posting);
  void mail(const Group& group, const ProcessPosting& posting, const CudaStream& stream);
  Shared awaited(Handle handle);
  void let_go(Shared& posting);
  std::uint32_t* on_device(std::uint32_t* word) const { return control_.on_device(word); }
  cudaStream_t stream_of(CopyLane lane);
  const CudaStream& own(Stream& stream) const;
  void remember(const CudaStream& stream);

  void retire();
  void throw_if_failed();
  void settle();
  void watch(const std::stop_token& stop);
  std::string look();
  std::string overdue(const ProcessPosting& posting);
  void mark_streams_failed();
  void release_own_flags();
  void leave();

  const PeerProcess process_;
  const std::chrono::milliseconds deadline_;
  ControlBlock control_;
  Arenas arenas_;
  EventPool events_;
  CudaStream admin_;
  DeviceClock clock_;

  // Never held in a call that may wait for the device. Enqueuing may, once the launch queue is
  // full, so the launching thread enqueues without it: the watchdog must get at all below.
  std::mutex mutex_;
  std::int64_t next_id_ = 0;
  std::deque<Shared> open_;
  std::vector<ExchangeRecord> records_;
  std::map<CopyLane, std::unique_ptr<BareStream>> lanes_;
  std::map<std::tuple<std::int32_t, bool, std::int32_t>, std::uint32_t> last_values_;

  std::mutex streams_mutex_;
  std::set<std::shared_ptr<StreamFailure>> streams_;

  std::jthread watchdog_;  // last: it uses everything above
};

}  // namespace libra::peer
