// The in-process transport: the workers are threads of one program, each with one endpoint.
//
//   auto endpoints = make_inproc_group(4);          // endpoints[w] goes to worker w's thread
//   TaskQueue stream;                                // one per worker
//   Handle handle = endpoints[w]->post(exchange, stream);
//
// Data is copied by one thread per endpoint, as a GPU's copy engine would: the receiver's thread
// copies straight from the sender's rows into the receiver's, once both streams have reached their
// posts. A wait is a step of the stream. A send to oneself is a transfer like any other; the two
// ends of a transfer may cut their bytes into rows differently.
//
// Order: posts of one tag match in the order in which the streams reach them, which on one stream
// is the order of the posts.
//
// Failure: the first one fails all endpoints at once, and every later error carries its cause. It
// is a half whose peer has not come within the deadline (counted from when the stream reached the
// post), byte counts that differ, abort(), a stream that failed before its post or wait, or an
// endpoint destroyed while it or a peer waits. Copies under way are cut off first: once a worker
// has seen the error, from its stream, poll() or abort(), nothing touches its memory any more.
//
// Endpoints may be destroyed in any order and state, before or after the streams. Records are kept
// (64 bytes an exchange) until they are taken. Streams must be TaskQueues.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/transport/transport.h"

namespace libra {

/// One endpoint per worker, by worker. Throws ConfigError if `workers` or the deadline is not
/// positive.
std::vector<std::unique_ptr<Transport>> make_inproc_group(std::int32_t workers,
                                                          const TransportOptions& options = {});

}  // namespace libra
