// An in-order queue of device work: what a CUDA stream is, and what TaskQueue (task_queue.h) is on
// a CPU.
//
// Attention backends and transports enqueue onto the stream they are given and return at once; work
// runs in the order it was enqueued. A backend knows the kind of stream it works with and casts to
// it.
#pragma once

#include <cstdint>

namespace libra {

/// When earlier work on a stream was done.
struct Timestamp {
  std::int64_t wall_ns = 0;  ///< a steady clock, comparable within one process
  std::int64_t cpu_ns =
      0;  ///< CPU time of the thread that runs the stream; 0 where there is no such thread
};

class Stream {
 public:
  virtual ~Stream() = default;

  /// Enqueues: store the time here. `out` must live until the stream has been synchronised.
  virtual void mark(Timestamp* out) = 0;

  /// Blocks the caller until everything enqueued has run. Throws the error of the first task that
  /// failed (TransportError past a deadline), now and at every later call; a stream that has failed
  /// computes no more.
  virtual void synchronize() = 0;
};

}  // namespace libra
