// Exchange by copy engines between processes on one host, one worker each: memory of other
// processes is reached over CUDA IPC, and streams order their work by flags in shared memory.
//
//   auto transport = make_peer_process({"run-7-pool-3", worker, workers, device}, {});
//
// Q, K, V and dO are pushed into the peer's arena; O, LSE, dQ, dK and dV are pulled from it by
// their home. So of every transfer one end at least must lie in its worker's arena; other host
// memory moves up to 64 bytes at a time (agreement on the plan). What an exchange waits for is
// waited for by streams, never by the host.
//
// Order. A GPU serves CUDA_DEVICE_MAX_CONNECTIONS queues, 8 unless it is set. A stream that waits
// for a flag occupies one, and where all but one are occupied everything stops. So a worker copies
// in four lanes, a stream each (CopyLane, transport.h), of which a pass uses three, whatever the
// number of peers. A post enqueues its signals before its waits; so if every worker posts its
// phases in the same order, a pass ends also where all streams share one hardware queue
// (one_queue). A tag is posted once: one post with its sends, one with its receives.
//
// Failure. A watchdog thread looks every millisecond, also while the host waits in a call because
// the launch queue is full. When a peer's half is overdue, or a worker has failed or left, it marks
// all streams of its process failed (what they leave is filled with NaN), then frees them, and
// every later call throws the same TransportError.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "libra/transport/transport.h"

namespace libra {

struct PeerProcess {
  std::string pool;  ///< the same on all its workers, different for every pool and run on this host
  std::int32_t worker = 0;
  std::int32_t workers = 1;
  std::int32_t device = 0;
  /// Keeps to an order that is right also where all streams of the process share one hardware queue
  /// (CUDA_DEVICE_MAX_CONNECTIONS=1; take it below 8): nothing waits on a stream before its turn
  /// has come on every worker, which makes guests wait for busy homes unless plans have at most 2
  /// chunks. false: exchanges may be posted ahead, so that a busy home holds up nobody.
  bool one_queue = true;
};

/// Returns when all workers of the pool have come here. Throws ConfigError for options that cannot
/// be or contradict another worker's, TransportError if one does not come within the deadline.
///
/// reserve_arena must be given the same bytes on every worker; where it grows, it waits for all.
std::unique_ptr<Transport> make_peer_process(const PeerProcess& process,
                                             const TransportOptions& options);

}  // namespace libra
