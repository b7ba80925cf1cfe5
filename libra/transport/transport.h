// Moving rows of bytes between workers under running computation: the interface that every
// transport implements.
//
// A worker posts its half of an exchange: what it sends and what it receives under one tag. Data
// moves once both halves of a transfer are there and the streams they were posted on have come that
// far; it moves beside the streams, never on them. A wait holds back later work of a stream, never
// the caller:
//
//   Handle out = transport.post({.tag = tag, .sends = sends}, stream);
//   Handle in = transport.post({.tag = tag, .receives = receives}, stream);
//   backend.forward(...local..., stream);     // runs while the data moves
//   transport.wait(in, stream);
//   backend.forward(...received..., stream);  // runs when it has come
//
// Matching: transfers between the same two workers under the same tag match in list order, over all
// posts with that tag. Both ends must give the same number of bytes. Sends and receives of one tag
// may be posted apart. A worker with nothing to send or receive may post empty lists.
//
// Failure: if a peer dies, disagrees, or has not come within the deadline, every worker's streams
// fail with a TransportError that names the worker, the peer and the tag, all within the deadline;
// the transport is then of no further use. Threads: one launching thread per worker calls a
// transport.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libra/base/stream.h"
#include "libra/base/strided_view.h"

namespace libra {

/// What an exchange is for; part of its tag and of error messages.
enum class Phase : std::uint8_t {
  kAgree,             ///< fingerprints, before a plan is first used
  kForwardDispatch,   ///< Q, K, V out of their homes
  kForwardReturn,     ///< O (and LSE) back home
  kBackwardDispatch,  ///< dO, and with refetch all of Q, K, V, O, LSE
  kBackwardReturn,    ///< dQ back home
  kGradientReturn,    ///< dK, dV back home
};

/// "forward dispatch" and so on.
std::string_view phase_name(Phase phase);

/// Names one exchange among all that two workers have in flight.
struct Tag {
  std::int32_t step =
      0;  ///< counts forward and backward passes; [0, 2^12) in flight are told apart
  Phase phase = Phase::kAgree;
  std::int32_t chunk = 0;  ///< [0, 256)
  std::int32_t round = 0;  ///< [0, 16): relays
  friend bool operator==(const Tag&, const Tag&) = default;
};

/// Rounds from here on are between relays and the others of their node.
constexpr std::int32_t kRelayRounds = 2;

/// A transport may copy in order: what a worker copies to others or from others, of the rounds
/// below kRelayRounds or of the others, in the order of its posts. (A stream that waits for a peer
/// takes up one of a GPU's 8 queues, so there cannot be one per peer.) Whoever posts keeps to an
/// order that ends on all workers.
struct CopyLane {
  bool to_others;
  bool of_relays;
  friend bool operator<(const CopyLane& a, const CopyLane& b) {
    return std::pair(a.to_others, a.of_relays) < std::pair(b.to_others, b.of_relays);
  }
};

inline CopyLane lane_of(const Tag& tag, bool to_others) {
  return {to_others, tag.round >= kRelayRounds};
}

/// "step 4, forward dispatch, chunk 2, round 0".
std::string describe(const Tag& tag);

/// One strided block on its way between this worker and `peer`.
struct Transfer {
  std::int32_t peer = 0;
  StridedView local;  ///< this worker's memory: read from if sent, written to if received
  /// Where the peer's end lies, in bytes from the start of the peer's arena; -1: not in its arena.
  /// One-sided transports write to or read from it; two-sided ones do not look.
  std::int64_t peer_arena_offset = -1;
};

struct Exchange {
  Tag tag;
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  /// The same worker posts the rest of this tag next: transports that must begin all of a tag's
  /// transfers together wait for it.
  bool more = false;
};

/// Names a posted exchange; plain and copyable. Valid for the transport that gave it.
struct Handle {
  std::int64_t id = -1;
};

/// What one finished exchange did, for the timeline.
struct ExchangeRecord {
  Tag tag;
  std::int64_t begin_ns = 0;  ///< both clocks as Timestamp::wall_ns: first byte may move
  std::int64_t end_ns = 0;    ///< last byte has come
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
};

struct TransportOptions {
  /// Longest time that a worker waits for a peer's half of an exchange.
  std::chrono::milliseconds deadline{30'000};
};

/// One worker's end.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string name() const = 0;
  virtual std::int32_t worker() const = 0;  ///< [0, workers())
  virtual std::int32_t workers() const = 0;

  /// Grows this worker's arena to at least `bytes`; memory that peers may reach, aligned to 256
  /// bytes. Contents are lost. Call it on every worker with the same bytes, and with no exchange in
  /// flight: where it grows, it may wait for the others.
  virtual void reserve_arena(std::int64_t bytes) = 0;

  /// Start of the arena; changes only in reserve_arena. Its size in bytes is arena_bytes().
  virtual std::byte* arena() = 0;
  virtual std::int64_t arena_bytes() const = 0;

  /// Whether an exchange may be posted long before its peer's half, while later posts and the
  /// streams go on. If not, an exchange is best posted when its turn comes on every worker.
  virtual bool posts_ahead() const { return true; }

  /// Enqueues this worker's half. The exchange is copied; the memory must live until a wait for it
  /// has passed.
  virtual Handle post(const Exchange& exchange, Stream& stream) = 0;

  /// Holds back work enqueued on `stream` from here on until the exchange is complete at this end:
  /// sent memory may be reused, received data is there.
  virtual void wait(Handle handle, Stream& stream) = 0;

  /// Throws the TransportError of a failed exchange, if there is one. Never blocks.
  virtual void poll() = 0;

  /// Fails every worker's exchanges, pending and future, with `reason`: for a worker that cannot go
  /// on.
  virtual void abort(const std::string& reason) = 0;

  /// The exchanges finished since the last call, in the order they were posted. Call with the
  /// stream idle.
  virtual std::vector<ExchangeRecord> take_records() = 0;
};

}  // namespace libra
