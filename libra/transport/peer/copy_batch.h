// The copies from one worker to another that belong to one pair of postings, as enqueued on a copy
// stream. Private to this folder.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "libra/cuda/device_clock.h"

namespace libra::peer {

/// An event that goes back to its pool with its last owner, under the hub's mutex like every use
/// of it.
class PooledEvent {
 public:
  explicit PooledEvent(EventPool& pool) : pool_(pool), event_(pool.take()) {}
  ~PooledEvent() { pool_.give_back(event_); }
  PooledEvent(const PooledEvent&) = delete;
  PooledEvent& operator=(const PooledEvent&) = delete;

  cudaEvent_t get() const { return event_; }

 private:
  EventPool& pool_;
  cudaEvent_t event_;
};

struct CopyBatch {
  CopyBatch(EventPool& pool, const DeviceClock& device_clock)
      : begin(pool), end(pool), clock(device_clock) {}

  PooledEvent begin;  ///< before the first copy
  PooledEvent end;    ///< after the last
  const DeviceClock& clock;
};

}  // namespace libra::peer
