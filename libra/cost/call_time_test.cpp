#include "libra/cost/call_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "libra/base/rng.h"

namespace libra {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kLaunch = 1'000'000;

// At every length as fast: on one of its 4 multiprocessors a pair of one head takes 4 x 512 ps
// forward and 4 x 1280 ps backward.
DeviceProfile plain_device() {
  DeviceProfileData data;
  data.name = "plain";
  data.launch_ps = kLaunch;
  data.multiprocessors = 4;
  data.block_tokens = kBlock;
  data.forward.rates = {{1}, {1}, {1}, {1000}};
  data.backward.rates = {{1}, {1}, {1}, {1000}};
  return DeviceProfile(data);
}

constexpr std::int64_t kForwardPairPs = 4 * 512;
constexpr std::int64_t kBackwardPairPs = 4 * 1280;
// What rounding may make of a time.
constexpr double kPrecision = 1e-6;

void expect_ps(std::int64_t actual, std::int64_t expected) {
  EXPECT_NEAR(static_cast<double>(actual) / static_cast<double>(expected), 1.0, kPrecision);
}

TEST(CallTime, OneBlockMoreThanMultiprocessorsTakesAnotherTurn) {
  const DeviceProfile device = plain_device();
  const TokenRange tile{65536 - kBlock, 65536};
  const std::int64_t block = query_key_pairs(tile) * kForwardPairPs;
  const struct {
    std::int32_t heads;
    std::int64_t turns;
  } cases[] = {{1, 1}, {4, 1}, {5, 2}, {8, 2}, {9, 3}};
  for (const auto& [heads, turns] : cases) {
    SCOPED_TRACE(testing::Message() << heads << " heads");
    CallTime call;
    call.add(device.forward_entry(tile, heads));
    expect_ps(call.total_ps(device), kLaunch + turns * block);
    expect_ps(device.forward_call_ps({tile}, heads), kLaunch + turns * block);
    // The same blocks, an entry each.
    CallTime apart;
    for (std::int32_t head = 0; head < heads; ++head) apart.add(device.forward_entry(tile, 1));
    expect_ps(apart.total_ps(device), kLaunch + turns * block);
  }
}

TEST(CallTime, TheLongestBlocksTakeTurnsWhateverShortOnesAreBesideThem) {
  const DeviceProfile device = plain_device();
  const TokenRange tile{65536 - kBlock, 65536};
  const TokenRange shorter{32768 - kBlock, 32768};
  CallTime call;
  call.add(device.forward_entry(shorter, 1));
  call.add(device.forward_entry(tile, 5));
  expect_ps(call.total_ps(device), kLaunch + 2 * query_key_pairs(tile) * kForwardPairPs);
  // Ten blocks take three turns, of the shorter ones at least.
  call.add(device.forward_entry(shorter, 4));
  EXPECT_GE(call.total_ps(device), kLaunch + 3 * query_key_pairs(shorter) * kForwardPairPs);
}

TEST(CallTime, BackwardTheBlocksOfKeysThatAllQueriesSeeTakeTurns) {
  const DeviceProfile device = plain_device();
  const TokenRange queries{5 * kBlock, 5 * kBlock + 16};
  const std::int64_t block = queries.size() * kBlock * kBackwardPairPs;
  const DeviceProfile::EntryTime entry = device.backward_entry(queries, 3);
  EXPECT_EQ(entry.blocks, 15);
  expect_ps(entry.block_ps, block);
  expect_ps(device.backward_call_ps({queries}, 1), kLaunch + 2 * block);
  expect_ps(device.backward_call_ps({queries}, 3), kLaunch + 4 * block);
}

TEST(CallTime, BlocksShorterThanALaunchAreNotCounted) {
  const DeviceProfile device = plain_device();
  EXPECT_EQ(device.forward_entry({0, 16}, 32).blocks, 0);
  EXPECT_GT(device.forward_entry({65000, 65016}, 32).blocks, 0);
}

// Each block, longest first, to the multiprocessor that is free first.
std::int64_t scheduled_ps(const std::vector<TokenRange>& entries, std::int32_t heads) {
  std::vector<std::int64_t> blocks;
  for (const TokenRange entry : entries) {
    for (std::int64_t begin = entry.begin; begin < entry.end; begin += kBlock) {
      const std::int64_t ps = query_key_pairs({begin, begin + kBlock}) * kForwardPairPs;
      blocks.insert(blocks.end(), static_cast<std::size_t>(heads), ps);
    }
  }
  std::sort(blocks.rbegin(), blocks.rend());
  std::vector<std::int64_t> busy(4);
  for (const std::int64_t block : blocks) *std::min_element(busy.begin(), busy.end()) += block;
  return *std::max_element(busy.begin(), busy.end());
}

TEST(CallTime, IsNoLongerThanAScheduleAndNoShorterThanTheWork) {
  const DeviceProfile device = plain_device();
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const auto heads = static_cast<std::int32_t>(1 + rng.below(3));
    std::vector<TokenRange> entries;
    std::int64_t work = 0;
    for (std::uint64_t n = 1 + rng.below(6); n > 0; --n) {
      const auto begin = static_cast<std::int64_t>(rng.below(200)) * kBlock;
      entries.push_back({begin, begin + static_cast<std::int64_t>(1 + rng.below(6)) * kBlock});
      work += query_key_pairs(entries.back()) * heads;
    }
    const auto call = static_cast<double>(device.forward_call_ps(entries, heads) - kLaunch);
    EXPECT_LE(call, static_cast<double>(scheduled_ps(entries, heads)) * (1 + kPrecision));
    EXPECT_GE(call, static_cast<double>(work * 512) * (1 - kPrecision));
  }
}

TEST(CallTime, ScalesItsBlocksWithItsWork) {
  const DeviceProfile device = plain_device();
  CallTime call;
  call.add(device.forward_entry({65536 - kBlock, 65536}, 5));
  const std::int64_t whole = call.total_ps(device) - kLaunch;
  call.scale(0.25);
  expect_ps(call.total_ps(device) - kLaunch, whole / 4);
}

TEST(CallTime, SaturatesInsteadOfOverflowing) {
  DeviceProfileData slow = plain_device().data();
  slow.forward.rates = {{1}, {1}, {1}, {1}};
  slow.multiprocessors = 1 << 16;
  const DeviceProfile device = DeviceProfile(slow).for_shape({4096, 1, kMaxHeadDim, kMaxHeadDim});
  const TokenRange whole{DeviceProfile::kMaxSampleTokens / 2, DeviceProfile::kMaxSampleTokens};
  // As many turns as heads; 600 times 2^55 would come out positive and too long.
  EXPECT_EQ(device.forward_call_ps({whole}, 600), kLaunch + DeviceProfile::kMaxEntryPs);
}

TEST(CallTime, OfNothingIsNothing) {
  const DeviceProfile device = plain_device();
  CallTime call;
  call.add(device.forward_entry({7, 7}, 32));
  EXPECT_EQ(call.total_ps(device), 0);
}

}  // namespace
}  // namespace libra
