// How long attention takes on one kind of device, predicted from measurements: the costs that
// placement balances, and the time of a whole call for the simulator.
//
//   const DeviceProfile device = find_device_profile("h200").for_shape(model.attention);
//   std::int64_t ps = device.forward_ps({4096, 8192}, 16);  // 16 heads of one piece
//
// An entry's time is FLOPs / rate(queries, keys, heads), plus a constant: its share of a device
// that other entries keep full. A call's time is that of its entries, but at least that of its
// longest block alone (a lone tile of one head cannot fill the device) and of the turns that its
// blocks take (call_time.h), plus the launch.
//
// Picoseconds are whole numbers from whole-number arithmetic: equal on every rank and platform.
// Not a simulator of the device: clocks, caches and neighbours are in the rates or nowhere. What
// was measured and what assumed: docs/device_profiles.md, which also describes the JSON form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libra/base/range.h"
#include "libra/cost/attention_shape.h"
#include "libra/cost/rate_table.h"

namespace libra {

/// The plain numbers of a profile, at head_dim = value_dim = 128.
struct DeviceProfileData {
  struct Pass {
    std::int64_t entry_ps = 0;  ///< constant per entry
    RateGrid rates;             ///< of calls that fill the device

    friend bool operator==(const Pass&, const Pass&) = default;
  };

  std::string name;
  std::string source;                ///< where the numbers come from, for people
  std::int64_t launch_ps = 0;        ///< per call
  std::int32_t multiprocessors = 1;  ///< blocks that run at the same time
  std::int32_t block_tokens = 128;   ///< queries (forward) or keys (backward) of one block
  std::int64_t add_mb_per_s = 1;     ///< read and written by fp32 additions of gradients
  Pass forward;
  Pass backward;

  friend bool operator==(const DeviceProfileData&, const DeviceProfileData&) = default;
};

/// Immutable: any thread may read.
class DeviceProfile {
 public:
  /// No entry takes longer than this (ten hours): the sum of 255 of them fits 64 bits. A million
  /// tokens at 64 heads stay hundreds of times below, so their sum over 256 workers fits too.
  static constexpr std::int64_t kMaxEntryPs = std::int64_t{1} << 55;
  static constexpr std::int64_t kMaxSampleTokens = std::int64_t{1} << 24;

  /// Throws ConfigError that names the field.
  explicit DeviceProfile(DeviceProfileData data);

  /// The same device at other dimensions, times scaled by FLOPs (only 128 was measured). Throws
  /// ConfigError for a shape that is not valid.
  DeviceProfile for_shape(const AttentionShape& shape) const;

  /// Time of one entry: causal `queries` [a, e) of a sample against its keys [0, e), for `heads`
  /// query heads. 0 if there are no queries or no heads, else positive. Requires 0 <= a, e <=
  /// kMaxSampleTokens, heads <= kMaxHeads. Tens of nanoseconds.
  std::int64_t forward_ps(TokenRange queries, std::int32_t heads) const {
    return entry_ps(forward_, queries, heads);
  }
  std::int64_t backward_ps(TokenRange queries, std::int32_t heads) const {
    return entry_ps(backward_, queries, heads);
  }

  /// What one entry adds to a call, for callers that sum the entries of many calls themselves.
  struct EntryTime {
    std::int64_t ps = 0;                ///< as forward_ps
    std::int64_t longest_block_ps = 0;  ///< no call with this entry is shorter
    std::int64_t blocks = 0;            ///< as long as block_ps or longer; 0 if none is as long
    std::int64_t block_ps = 0;          ///< as a launch, since then turns hardly count
  };
  EntryTime forward_entry(TokenRange queries, std::int32_t heads) const {
    return entry_time(forward_, queries, heads);
  }
  EntryTime backward_entry(TokenRange queries, std::int32_t heads) const {
    return entry_time(backward_, queries, heads);
  }

  /// Time of one call with these entries and nothing beside it; 0 if all are empty.
  std::int64_t forward_call_ps(const std::vector<TokenRange>& entries, std::int32_t heads) const;
  std::int64_t backward_call_ps(const std::vector<TokenRange>& entries, std::int32_t heads) const;

  /// Time in which the additions that sum up gradients read and write so many bytes. Requires bytes
  /// of at least 0.
  std::int64_t add_ps(std::int64_t bytes) const;

  const std::string& name() const { return data_.name; }
  const std::string& source() const { return data_.source; }
  /// As given, whatever for_shape() was asked for.
  const DeviceProfileData& data() const { return data_; }

 private:
  struct Pass {
    RateTable rates;
    std::int64_t entry_ps = 0;
    std::int64_t milliflops_per_pair = 0;  // FLOPs of a query-key pair of one head, times 1000
  };

  std::int64_t entry_ps(const Pass& pass, TokenRange queries, std::int32_t heads) const;
  static std::int64_t log2_rate(const Pass& pass, TokenRange queries, std::int32_t heads);
  EntryTime entry_time(const Pass& pass, TokenRange queries, std::int32_t heads) const;
  std::int64_t call_ps(const Pass& pass, const std::vector<TokenRange>& entries,
                       std::int32_t heads) const;
  std::int64_t longest_block_pairs(const Pass& pass, TokenRange queries) const;
  struct Blocks {
    std::int64_t count = 0;  // of one head
    std::int64_t pairs = 0;  // of each, at least
  };
  Blocks long_blocks(const Pass& pass, TokenRange queries) const;

  DeviceProfileData data_;
  Pass forward_;
  Pass backward_;
};

/// Names of the built-in profiles: h200.
const std::vector<std::string>& known_device_profiles();

/// A built-in profile. Throws ConfigError that lists the names.
DeviceProfile find_device_profile(std::string_view name);

/// The built-in profile of this name, else the one in this JSON file (./h200 is a file). Throws
/// InputError with the path and the field.
DeviceProfile load_device_profile(const std::string& name_or_path);

/// The JSON text that load_device_profile reads back to equal data.
std::string format_device_profile(const DeviceProfileData& data);

}  // namespace libra
