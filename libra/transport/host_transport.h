// The part of a Transport that is the same for all whose streams are TaskQueues: arena, handles,
// what is enqueued, what happens when a stream fails. A Mover does the rest. After a failure post()
// and poll() throw it; a wait() reports it through its stream.
//
//   class MyMover final : public Mover { ... };
//   return std::make_unique<HostTransport>("mine", workers, ledger, mover);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libra/transport/arena.h"
#include "libra/transport/ledger.h"
#include "libra/transport/transport.h"

namespace libra {

/// Moves the bytes of one worker's postings and tells the ledger. Outlives the transport while
/// streams still have steps that use it.
class Mover {
 public:
  virtual ~Mover() = default;

  /// See Transport::posts_ahead.
  virtual bool posts_ahead() const { return true; }

  /// Takes the posting over, on the thread of the stream that reached it; does not block on peers.
  virtual void arm(const std::shared_ptr<Posting>& posting) = 0;

  /// Fails every worker, this one at once.
  virtual void fail(const std::string& cause) = 0;

  /// The transport is being destroyed: what is pending fails. Returns once nothing touches this
  /// worker's memory; ends in any state and never throws.
  virtual void leave() = 0;
};

class HostTransport final : public Transport {
 public:
  HostTransport(std::string name, std::int32_t workers, std::shared_ptr<Ledger> ledger,
                std::shared_ptr<Mover> mover);
  ~HostTransport() override;

  std::string name() const override { return name_; }
  std::int32_t worker() const override { return ledger_->worker(); }
  std::int32_t workers() const override { return workers_; }
  void reserve_arena(std::int64_t bytes) override;
  std::byte* arena() override { return arena_.data(); }
  std::int64_t arena_bytes() const override { return arena_.bytes(); }
  bool posts_ahead() const override { return mover_->posts_ahead(); }
  Handle post(const Exchange& exchange, Stream& stream) override;
  void wait(Handle handle, Stream& stream) override;
  void poll() override { ledger_->throw_if_failed(); }
  void abort(const std::string& reason) override;
  std::vector<ExchangeRecord> take_records() override { return ledger_->take_records(); }

 private:
  std::string name_;
  std::int32_t workers_;
  Arena arena_;
  std::shared_ptr<Ledger> ledger_;
  std::shared_ptr<Mover> mover_;
};

}  // namespace libra
