// The time of attention calls, summed entry by entry: forward and backward together, as every
// method needs both.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libra/cost/device_profile.h"

namespace libra {

/// One direction of one call.
struct CallTime {
  std::int64_t ps = 0;
  std::int64_t longest_block_ps = 0;

  void add(const DeviceProfile::EntryTime& entry) {
    ps += entry.ps;
    longest_block_ps = std::max(longest_block_ps, entry.longest_block_ps);
  }
  void add(const CallTime& other) {
    ps += other.ps;
    longest_block_ps = std::max(longest_block_ps, other.longest_block_ps);
  }
  /// 0 for a call without work.
  std::int64_t total_ps(std::int64_t launch_ps) const {
    return ps == 0 ? 0 : launch_ps + std::max(ps, longest_block_ps);
  }
};

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
