// One worker's account of the exchanges it has posted: what all transports on CPU streams share.
//
// A posting goes through: opened (by the caller) -> armed (its turn has come on its stream) -> each
// transfer's other half has come -> each transfer is finished -> complete. The ledger holds back
// whoever awaits a posting, keeps the clocks, and knows the first failure. It moves no data: that
// is a Mover's part (host_transport.h).
//
//   auto posting = ledger.open(exchange);       // caller
//   ledger.arm(*posting);                        // stream
//   ledger.came(*posting, 0);                    // mover: transfer 0 may move now
//   ledger.finished(*posting, 0);                // mover
//   ledger.await(*posting);                      // stream: blocks until complete or failed
//
// Memory: a mover holds the ledger while it may touch this worker's memory. A failure is reported
// only when nobody holds it any more, so that whoever sees the error may free the memory.
// Threads: any; every function locks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libra/transport/transport.h"

namespace libra {

/// One posted exchange. Transfers are numbered: the sends in list order, then the receives.
class Posting {
 public:
  Posting(std::int64_t id, Exchange exchange, const std::byte* arena);

  const Exchange& exchange() const { return exchange_; }
  const std::byte* arena() const { return arena_; }  ///< of the worker that posted; null: unknown
  std::size_t transfers() const { return came_.size(); }
  bool is_send(std::size_t transfer) const { return transfer < exchange_.sends.size(); }
  const Transfer& transfer(std::size_t transfer) const;

 private:
  friend class Ledger;  // everything that changes is guarded by its mutex

  std::int64_t id_;
  Exchange exchange_;
  const std::byte* arena_;
  bool armed_ = false;
  bool complete_ = false;
  std::chrono::steady_clock::time_point armed_at_;
  std::vector<bool> came_;  // by transfer: the peer's half is there
  std::size_t missing_;     // transfers whose peer's half is not there
  std::size_t unfinished_;
  ExchangeRecord record_;
};

class Ledger {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Requires a positive deadline.
  Ledger(std::int32_t worker, const TransportOptions& options);

  std::int32_t worker() const { return worker_; }

  std::shared_ptr<Posting> open(const Exchange& exchange, const std::byte* arena = nullptr);
  std::shared_ptr<Posting> find(Handle handle) const;  ///< null if it is complete
  static Handle handle(const Posting& posting) { return {posting.id_}; }

  /// The deadline counts from here. A posting without transfers is complete at once.
  void arm(Posting& posting);
  void came(Posting& posting, std::size_t transfer);
  void finished(Posting& posting, std::size_t transfer);

  /// Only the first cause counts. From then on no posting completes except by finished().
  void fail(const std::string& cause);

  /// A failure is not reported, and settle() does not return, between hold and its release.
  void hold();
  void release();

  /// Blocks until the posting is complete; throws TransportError with the first cause if it failed.
  void await(const Posting& posting) const;

  /// Blocks until nobody holds the ledger. Requires a failure, so that it ends.
  void settle() const;

  /// Throws the TransportError of a failure that may be reported. Never blocks.
  void throw_if_failed() const;

  /// When the first armed posting that misses a peer's half will be overdue; far in the future if
  /// there is none.
  TimePoint next_overdue() const;

  /// Names the posting that is overdue now, and the peers that have not come; empty if none is.
  std::string overdue_report() const;

  /// Names the first posting that is not complete; empty if all are.
  std::string first_open() const;

  /// Sorted by the order of opening; each is given once.
  std::vector<ExchangeRecord> take_records();

 private:
  struct Finished {
    std::int64_t id = 0;
    ExchangeRecord record;
  };

  void complete(Posting& posting);
  const Posting* first_missing() const;

  const std::int32_t worker_;
  const std::chrono::milliseconds deadline_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::int64_t next_id_ = 0;
  std::map<std::int64_t, std::shared_ptr<Posting>> open_;
  std::vector<Finished> finished_;
  std::string failure_;  // empty: none
  std::int64_t holders_ = 0;
};

}  // namespace libra
