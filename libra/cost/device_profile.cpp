#include "libra/cost/device_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/cost/call_time.h"
#include "libra/cost/fixed_log.h"

namespace libra {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::int64_t kMaxConstantPs = 1'000'000'000'000;  // a second
constexpr std::int64_t kMaxMbPerS = 1'000'000'000'000;
constexpr std::int64_t kMeasuredDims = 256;        // head_dim + value_dim
constexpr std::int64_t kForwardMilliflops = 2000;  // per unit of head_dim + value_dim
constexpr std::int64_t kBackwardMilliflops = 5000;

// work * milliflops / rate: 1e-3 FLOP over 1e9 FLOP/s is a picosecond. The rate comes as its
// logarithm, so its reciprocal is 2^fraction * 2^-exponent.
class ComputeTime {
 public:
  ComputeTime(std::int64_t milliflops, std::int64_t log2_rate)
      : milliflops_(static_cast<std::uint64_t>(milliflops)) {
    constexpr std::int64_t kOne = std::int64_t{1} << fixed_log::kFractionBits;
    const std::int64_t exponent = (log2_rate + kOne - 1) >> fixed_log::kFractionBits;
    reciprocal_ = fixed_log::exp2_fixed(static_cast<std::uint64_t>(exponent * kOne - log2_rate));
    shift_ = static_cast<unsigned>(31 + exponent);
  }

  std::int64_t ps(std::int64_t work) const {
    const Wide product = Wide{static_cast<std::uint64_t>(work)} * milliflops_ * reciprocal_;
    const Wide rounded = (product + (Wide{1} << (shift_ - 1))) >> shift_;
    constexpr Wide kMax{static_cast<std::uint64_t>(DeviceProfile::kMaxEntryPs)};
    return static_cast<std::int64_t>(std::min(rounded, kMax));
  }

 private:
  std::uint64_t milliflops_;
  std::uint64_t reciprocal_ = 0;
  unsigned shift_ = 0;
};

std::int64_t all_ps(const ComputeTime& time, std::int64_t constant_ps, TokenRange queries,
                    std::int32_t heads) {
  return std::clamp<std::int64_t>(constant_ps + time.ps(query_key_pairs(queries) * heads), 1,
                                  DeviceProfile::kMaxEntryPs);
}

void check_between(std::string_view field, std::int64_t value, std::int64_t least,
                   std::int64_t most) {
  if (value >= least && value <= most) return;
  throw ConfigError(fmt::format("{} is {}: must be in [{}, {}]", field, value, least, most));
}

void check_pass(std::string_view name, const DeviceProfileData::Pass& pass) {
  check_between(fmt::format("{}.entry_ps", name), pass.entry_ps, 0, kMaxConstantPs);
  try {
    validate(pass.rates);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}.{}", name, error.what()));
  }
}

DeviceProfileData validated(DeviceProfileData data) {
  if (data.name.empty()) throw ConfigError("name is empty: a device profile needs one");
  check_between("launch_ps", data.launch_ps, 0, kMaxConstantPs);
  check_between("multiprocessors", data.multiprocessors, 1, 1 << 16);
  check_between("block_tokens", data.block_tokens, 1, 1 << 16);
  check_between("add_mb_per_s", data.add_mb_per_s, 1, kMaxMbPerS);
  check_pass("forward", data.forward);
  check_pass("backward", data.backward);
  return data;
}

}  // namespace

DeviceProfile::DeviceProfile(DeviceProfileData data)
    : data_(validated(std::move(data))),
      forward_{RateTable(data_.forward.rates), data_.forward.entry_ps,
               kForwardMilliflops * kMeasuredDims},
      backward_{RateTable(data_.backward.rates), data_.backward.entry_ps,
                kBackwardMilliflops * kMeasuredDims} {}

DeviceProfile DeviceProfile::for_shape(const AttentionShape& shape) const {
  validate(shape);
  DeviceProfile scaled = *this;
  const std::int64_t dims = std::int64_t{shape.head_dim} + shape.value_dim;
  scaled.forward_.milliflops_per_pair = kForwardMilliflops * dims;
  scaled.backward_.milliflops_per_pair = kBackwardMilliflops * dims;
  return scaled;
}

std::int64_t DeviceProfile::log2_rate(const Pass& pass, TokenRange queries, std::int32_t heads) {
  LIBRA_CHECK(
      queries.begin >= 0 && queries.end <= kMaxSampleTokens && heads > 0 && heads <= kMaxHeads,
      "queries [{}, {}) with {} heads", queries.begin, queries.end, heads);
  return pass.rates.log2_rate(queries.size(), queries.end, heads);
}

std::int64_t DeviceProfile::entry_ps(const Pass& pass, TokenRange queries,
                                     std::int32_t heads) const {
  if (queries.empty() || heads == 0) return 0;
  const ComputeTime time(pass.milliflops_per_pair, log2_rate(pass, queries, heads));
  return all_ps(time, pass.entry_ps, queries, heads);
}

DeviceProfile::EntryTime DeviceProfile::entry_time(const Pass& pass, TokenRange queries,
                                                   std::int32_t heads) const {
  if (queries.empty() || heads == 0) return {};
  const ComputeTime time(pass.milliflops_per_pair, log2_rate(pass, queries, heads));
  EntryTime entry;
  entry.ps = all_ps(time, pass.entry_ps, queries, heads);
  entry.longest_block_ps = time.ps(longest_block_pairs(pass, queries) * data_.multiprocessors);
  if (entry.longest_block_ps < data_.launch_ps) return entry;
  const Blocks blocks = long_blocks(pass, queries);
  entry.blocks = blocks.count * heads;
  entry.block_ps = time.ps(blocks.pairs * data_.multiprocessors);
  return entry;
}

// A forward block is the last block_tokens queries with all their keys; a backward block is
// block_tokens keys with all the queries.
std::int64_t DeviceProfile::longest_block_pairs(const Pass& pass, TokenRange queries) const {
  if (&pass == &backward_) {
    return std::min(query_key_pairs(queries),
                    queries.size() * std::min<std::int64_t>(data_.block_tokens, queries.end));
  }
  return query_key_pairs({std::max(queries.begin, queries.end - data_.block_tokens), queries.end});
}

// Forward, all blocks: the first queries see the fewest keys. Backward, the blocks of keys that all
// queries see: the others are shorter, down to nothing.
DeviceProfile::Blocks DeviceProfile::long_blocks(const Pass& pass, TokenRange queries) const {
  const std::int64_t tokens = data_.block_tokens;
  if (&pass == &backward_) return {queries.begin / tokens, queries.size() * tokens};
  const TokenRange first{queries.begin, std::min(queries.end, queries.begin + tokens)};
  return {(queries.size() + tokens - 1) / tokens, query_key_pairs(first)};
}

std::int64_t DeviceProfile::call_ps(const Pass& pass, const std::vector<TokenRange>& entries,
                                    std::int32_t heads) const {
  CallTime call;
  for (const TokenRange queries : entries) call.add(entry_time(pass, queries, heads));
  return call.total_ps(*this);
}

std::int64_t DeviceProfile::add_ps(std::int64_t bytes) const {
  constexpr std::uint64_t kPsPerByteAtOneMbPerS = 1'000'000;
  const Wide time = Wide{static_cast<std::uint64_t>(bytes)} * kPsPerByteAtOneMbPerS /
                    static_cast<std::uint64_t>(data_.add_mb_per_s);
  constexpr Wide kMax{static_cast<std::uint64_t>(kMaxEntryPs)};
  return static_cast<std::int64_t>(std::min(time, kMax));
}

std::int64_t DeviceProfile::forward_call_ps(const std::vector<TokenRange>& entries,
                                            std::int32_t heads) const {
  return call_ps(forward_, entries, heads);
}

std::int64_t DeviceProfile::backward_call_ps(const std::vector<TokenRange>& entries,
                                             std::int32_t heads) const {
  return call_ps(backward_, entries, heads);
}

}  // namespace libra
