// The copies from one worker to another that belong to one pair of postings, as enqueued on a copy
// stream. Private to this folder.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "libra/cuda/device_clock.h"

namespace libra::peer {

struct CopyBatch {
  CopyBatch(EventPool& pool, const DeviceClock& device_clock)
      : begin(pool), end(pool), clock(device_clock) {}

  PooledEvent begin;  ///< before the first copy
  PooledEvent end;    ///< after the last
  const DeviceClock& clock;
};

}  // namespace libra::peer
