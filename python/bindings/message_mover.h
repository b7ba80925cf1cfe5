// A Mover (host_transport.h) over any library that sends and receives contiguous messages, one a
// transfer: torch.distributed's gloo has nothing to ask whether a message has come, only waits.
//
//   HostTransport transport("torch", workers, ledger, MessageMover::start(port, ledger, options));
//
// Messages begin when their posting's turn comes, and are awaited in that order by one thread. So a
// posting is seen to be complete only after those before it: right if every worker posts in the
// same order (posts_ahead is false).
//
// A library may tell only those that wait for a worker that has failed, not those that wait for
// one of these, nor those whose message was cut in its middle. So a wait that is long looks for
// what others have given as a cause, and whether the connection is still there.
//
// Memory: messages go from and to buffers of their own, so that a library that can't be stopped
// reaches none of the caller's memory after a failure. Where it can't, its thread is left behind
// (left_behind.h) and keeps the mover.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libra/transport/host_transport.h"
#include "python/bindings/message_port.h"
#include "python/bindings/wait_watch.h"

namespace libra::python {

class MessageMover final : public Mover {
 public:
  /// Its thread keeps it until leave().
  static std::shared_ptr<MessageMover> start(std::shared_ptr<MessagePort> port,
                                             std::shared_ptr<Ledger> ledger,
                                             const TransportOptions& options);
  MessageMover(std::shared_ptr<MessagePort> port, std::shared_ptr<Ledger> ledger,
               const TransportOptions& options);
  MessageMover(const MessageMover&) = delete;
  MessageMover& operator=(const MessageMover&) = delete;

  bool posts_ahead() const override { return false; }
  void arm(const std::shared_ptr<Posting>& posting) override;
  void fail(const std::string& cause) override;
  void leave() override;

 private:
  using Clock = std::chrono::steady_clock;

  struct InFlight {
    std::shared_ptr<Posting> posting;
    std::size_t transfer = 0;
    Clock::time_point overdue_at;
    std::vector<std::byte> bytes;
    std::unique_ptr<Message> message;  // below the bytes that it refers to
  };

  std::unique_ptr<InFlight> begin(const std::shared_ptr<Posting>& posting, std::size_t transfer);
  void serve();
  void finish(InFlight& in_flight);
  bool look_round();
  std::string cause_of(const InFlight& in_flight, const std::string& error);

  std::shared_ptr<MessagePort> port_;
  std::shared_ptr<Ledger> ledger_;
  std::chrono::milliseconds deadline_;

  std::mutex mutex_;
  std::condition_variable changed_, ended_;
  std::deque<std::unique_ptr<InFlight>> in_flight_;  // guarded
  std::shared_ptr<InFlight> awaited_;                // guarded
  bool leaving_ = false;                             // guarded
  bool failed_ = false;                              // guarded
  bool served_ = false;                              // guarded; the thread's last word
  std::once_flag failing_;                           // whoever comes second waits

  std::shared_ptr<InFlight> lost_;  // whose connection was gone; of the watch's thread
  WaitWatch watch_;                 // last: it uses everything above
  std::thread thread_;              // until leave()
};

}  // namespace libra::python
