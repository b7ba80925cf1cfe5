#include "libra/cost/call_time.h"

#include <algorithm>

namespace libra {
namespace {

std::int64_t capped_product(std::int64_t turns, std::int64_t ps) {
  constexpr std::int64_t kMax = DeviceProfile::kMaxEntryPs;
  return ps > 0 && turns > kMax / ps ? kMax : turns * ps;
}

}  // namespace

void CallTime::add(const DeviceProfile::EntryTime& entry) {
  together_ps_ += entry.ps;
  longest_block_ps_ = std::max(longest_block_ps_, entry.longest_block_ps);
  if (entry.blocks > 0) blocks_.push_back({entry.blocks, entry.block_ps});
}

void CallTime::add(const CallTime& other) {
  together_ps_ += other.together_ps_;
  longest_block_ps_ = std::max(longest_block_ps_, other.longest_block_ps_);
  blocks_.insert(blocks_.end(), other.blocks_.begin(), other.blocks_.end());
}

void CallTime::scale(double share) {
  const auto scale_one = [share](std::int64_t& ps) {
    ps = static_cast<std::int64_t>(static_cast<double>(ps) * share);
  };
  scale_one(together_ps_);
  scale_one(longest_block_ps_);
  for (Blocks& blocks : blocks_) scale_one(blocks.ps);
}

// Of the n longest blocks, for every n: their turns, none shorter than the n-th.
std::int64_t CallTime::turns_ps(std::int64_t multiprocessors) const {
  std::vector<Blocks> longest_first = blocks_;
  std::sort(longest_first.begin(), longest_first.end(),
            [](const Blocks& a, const Blocks& b) { return a.ps > b.ps; });
  std::int64_t most = 0, count = 0;
  for (const Blocks& blocks : longest_first) {
    count += blocks.count;
    const std::int64_t turns = (count + multiprocessors - 1) / multiprocessors;
    most = std::max(most, capped_product(turns, blocks.ps));
  }
  return most;
}

std::int64_t CallTime::total_ps(const DeviceProfile& device) const {
  if (together_ps_ == 0) return 0;
  const DeviceProfileData& data = device.data();
  return data.launch_ps +
         std::max({together_ps_, longest_block_ps_, turns_ps(data.multiprocessors)});
}

}  // namespace libra
