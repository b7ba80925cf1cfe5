// What goes on behind the in-process endpoints: a hub that matches halves, and a port per worker
// whose thread copies. Private to this folder.
//
// Locks: the hub's mutex comes first, a ledger's second. A copy holds both ends' ledgers, and the
// hub starts none after a failure; so a failure is reported only when no copy is left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "libra/transport/host_transport.h"
#include "libra/transport/ledger.h"

namespace libra::inproc {

class Hub {
 public:
  Hub(std::int32_t workers, const TransportOptions& options);

  const std::shared_ptr<Ledger>& ledger(std::int32_t worker) { return lane(worker).ledger; }

  /// Matches the posting's transfers with those that wait, and lets the others wait.
  void arm(std::int32_t worker, const std::shared_ptr<Posting>& posting);

  /// Fails every worker; later causes do not count.
  void fail(const std::string& cause);

  /// Whether every worker's ledger has the failure.
  bool failed();

  /// Copies what `worker` receives and watches its deadlines until it leaves.
  void serve(std::int32_t worker);

  /// Ends serve(worker). Fails everyone if the worker, or somebody who waits for it, is not done.
  void leave(std::int32_t worker);

 private:
  /// One end of a transfer.
  struct Half {
    std::int32_t worker = 0;
    std::shared_ptr<Posting> posting;
    std::size_t transfer = 0;
    const StridedView& view() const { return posting->transfer(transfer).local; }
  };
  struct Match {
    Half send;
    Half receive;
  };
  /// Halves that wait for their other half; at most one of the lists is not empty.
  struct Channel {
    std::deque<Half> sends;
    std::deque<Half> receives;
  };
  /// From, to; then the tag.
  using ChannelKey =
      std::tuple<std::int32_t, std::int32_t, std::int32_t, Phase, std::int32_t, std::int32_t>;
  /// What belongs to one worker.
  struct Lane {
    std::shared_ptr<Ledger> ledger;
    std::deque<Match> ready;  // to be copied by this worker's thread
    std::condition_variable changed;
    Ledger::TimePoint wakes_at;  // when its thread looks at the deadlines next
    bool left = false;
  };

  Lane& lane(std::int32_t worker) { return lanes_[static_cast<std::size_t>(worker)]; }
  void offer(const Half& half);
  static bool finds(const Half& half, const Half& other);
  void match(const Match& match);
  void copy(Lane& receiver, std::unique_lock<std::mutex>& lock);
  void watch_deadlines(Lane& lane);
  void fail_locked(const std::string& cause);
  std::string waiting_for(std::int32_t worker) const;

  std::mutex mutex_;
  std::vector<Lane> lanes_;
  std::map<ChannelKey, Channel> channels_;
  std::atomic<bool> failed_ = false;  // written under the mutex; running copies read it
};

/// A worker's access to the hub, and its copy thread.
class Port final : public Mover {
 public:
  Port(std::shared_ptr<Hub> hub, std::int32_t worker);
  ~Port() override;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void arm(const std::shared_ptr<Posting>& posting) override { hub_->arm(worker_, posting); }
  void fail(const std::string& cause) override { hub_->fail(cause); }
  void leave() override;

 private:
  std::shared_ptr<Hub> hub_;
  std::int32_t worker_;
  std::thread thread_;
};

}  // namespace libra::inproc
