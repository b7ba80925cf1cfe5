// The time of one attention call, summed entry by entry, for callers that add to many calls at
// once.
//
//   CallTime call;
//   call.add(device.forward_entry(queries, heads));  ...
//   const std::int64_t ps = call.total_ps(device);
//
// A multiprocessor runs one block after the other, so blocks take turns: 133 blocks of 3 ms take
// 6 ms on 132 multiprocessors, though as work spread evenly they would take 3.02. Of any n blocks
// some multiprocessor gets at least n / multiprocessors, rounded up; a call is as long as that
// takes. Not a schedule: where long blocks come late, calls take longer yet.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/cost/device_profile.h"

namespace libra {

/// One direction of one call, whose entries run side by side.
class CallTime {
 public:
  void add(const DeviceProfile::EntryTime& entry);
  void add(const CallTime& other);

  /// Every block, and so the call, takes `share` of its time.
  void scale(double share);

  /// With the launch; 0 for a call without work. Complexity: O(n log n) for n entries.
  std::int64_t total_ps(const DeviceProfile& device) const;

 private:
  struct Blocks {
    std::int64_t count = 0;
    std::int64_t ps = 0;  // of each, at least
  };

  std::int64_t turns_ps(std::int64_t multiprocessors) const;

  std::int64_t together_ps_ = 0;
  std::int64_t longest_block_ps_ = 0;
  std::vector<Blocks> blocks_;
};

}  // namespace libra
