// The time of attention calls, summed entry by entry: forward and backward together, as every
// method needs both.
#pragma once

#include <cstdint>

#include "libra/cost/call_time.h"

namespace libra {

struct CallPair {
  CallTime forward;
  CallTime backward;
  std::int64_t work = 0;  ///< query-key pairs times heads

  void add(const DeviceProfile& device, TokenRange queries, std::int32_t heads) {
    forward.add(device.forward_entry(queries, heads));
    backward.add(device.backward_entry(queries, heads));
    work += query_key_pairs(queries) * heads;
  }
  void add(const CallPair& other) {
    forward.add(other.forward);
    backward.add(other.backward);
    work += other.work;
  }
};

}  // namespace libra
