#include "libra/cost/device_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

// What the logarithm and the exponential (fixed_log.h) can be off by together, with room to spare.
constexpr double kPrecision = 1e-6;
// Rows of the measurements differ by this much from run to run.
constexpr double kNoise = 0.03;

const DeviceProfile& h200() {
  static const DeviceProfile profile = find_device_profile("h200");
  return profile;
}

void expect_node_time(const DeviceProfileData::Pass& pass,
                      std::int64_t (DeviceProfile::*time)(TokenRange, std::int32_t) const,
                      double flops_per_pair) {
  std::size_t index = 0;
  for (const std::int64_t h : pass.rates.heads) {
    for (const std::int64_t q : pass.rates.queries) {
      for (const std::int64_t k : pass.rates.keys) {
        const auto rate = static_cast<double>(pass.rates.gflops[index++]);
        if (q > k) continue;
        const auto work = static_cast<double>(query_key_pairs({k - q, k}) * h);
        const double wanted =
            static_cast<double>(pass.entry_ps) + work * flops_per_pair * 1000.0 / rate;
        const std::int64_t predicted = (h200().*time)({k - q, k}, static_cast<std::int32_t>(h));
        EXPECT_NEAR(static_cast<double>(predicted) / wanted, 1.0, kPrecision)
            << q << " queries, " << k << " keys, " << h << " heads";
      }
    }
  }
}

TEST(H200Profile, GivesEveryNodeOfItsTableBack) {
  expect_node_time(h200().data().forward, &DeviceProfile::forward_ps, 512);
  expect_node_time(h200().data().backward, &DeviceProfile::backward_ps, 1280);
}

// One entry's saturated rate in TF/s, without its constant.
double forward_tflops(std::int64_t q, std::int64_t k, std::int32_t heads) {
  const std::int64_t time = h200().forward_ps({k - q, k}, heads) - h200().data().forward.entry_ps;
  return 512.0 * static_cast<double>(query_key_pairs({k - q, k}) * heads) /
         static_cast<double>(time);
}

double backward_tflops(std::int64_t q, std::int64_t k, std::int32_t heads) {
  const std::int64_t time = h200().backward_ps({k - q, k}, heads) - h200().data().backward.entry_ps;
  return 1280.0 * static_cast<double>(query_key_pairs({k - q, k}) * heads) /
         static_cast<double>(time);
}

TEST(H200Profile, HasTheMeasuredRates) {
  const struct {
    std::int64_t queries, keys;
    std::int32_t heads;
    double tflops;
  } forward[] = {{4096, 32768, 32, 574.4},  {4096, 32768, 16, 654.5}, {4096, 32768, 8, 651.3},
                 {4096, 32768, 4, 631.8},   {4096, 4096, 32, 581.0},  {32768, 32768, 32, 592.8},
                 {65536, 65536, 32, 580.2}, {512, 65536, 32, 520.3},  {16384, 65536, 32, 571.5}},
    backward[] = {{4096, 32768, 32, 450.3}, {4096, 32768, 16, 454.4},  {4096, 32768, 8, 458.3},
                  {4096, 32768, 4, 493.9},  {4096, 32768, 2, 481.9},   {4096, 32768, 1, 488.1},
                  {4096, 4096, 32, 436.0},  {65536, 65536, 32, 524.9}, {512, 65536, 16, 406.3}};
  for (const auto& row : forward) {
    EXPECT_NEAR(forward_tflops(row.queries, row.keys, row.heads) / row.tflops, 1.0, kPrecision);
  }
  for (const auto& row : backward) {
    EXPECT_NEAR(backward_tflops(row.queries, row.keys, row.heads) / row.tflops, 1.0, kPrecision);
  }
}

TEST(H200Profile, PredictsWholeCallsThatWereMeasured) {
  const auto ms = [](std::int64_t ps) { return static_cast<double>(ps) * 1e-9; };
  const std::vector<TokenRange> shorts(400, TokenRange{0, 644});
  const std::vector<TokenRange> packs(64, TokenRange{0, 4096});
  EXPECT_NEAR(ms(h200().forward_call_ps(shorts, 32)) / 4.964, 1.0, kNoise);
  EXPECT_NEAR(ms(h200().backward_call_ps(shorts, 32)) / 16.046, 1.0, kNoise);
  EXPECT_NEAR(ms(h200().forward_call_ps(packs, 32)) / 15.143, 1.0, kNoise);
  EXPECT_NEAR(ms(h200().backward_call_ps(packs, 32)) / 50.446, 1.0, kNoise);
  EXPECT_NEAR(ms(h200().forward_call_ps({{0, 65536}}, 32)) / 60.642, 1.0, kNoise);
  EXPECT_NEAR(ms(h200().backward_call_ps({{0, 65536}}, 32)) / 167.574, 1.0, kNoise);
}

TEST(H200Profile, KnowsThatALoneTileOfFewHeadsCannotFillTheDevice) {
  const TokenRange tile = {131072 - 2048, 131072};
  const std::int64_t one_head = h200().forward_call_ps({tile}, 1);
  EXPECT_NEAR(static_cast<double>(one_head) * 1e-9 / 1.875, 1.0, kNoise);
  EXPECT_EQ(h200().forward_call_ps({tile}, 2), one_head);
  EXPECT_GT(one_head, 7 * h200().forward_ps(tile, 1));
}

// Measured: 256 blocks take twice as long as up to 128.
TEST(H200Profile, KnowsThatBlocksTakeTurns) {
  const TokenRange tile = {131072 - 2048, 131072};
  const std::vector<TokenRange> company(16, tile);
  const std::int64_t call = h200().forward_call_ps(company, 1);
  EXPECT_NEAR(static_cast<double>(call) * 1e-9 / (2 * 1.875), 1.0, kNoise);
  EXPECT_GT(call, 16 * h200().forward_ps(tile, 1) + h200().data().launch_ps);
}

TEST(DeviceProfile, TakesNoTimeForNothing) {
  EXPECT_EQ(h200().forward_ps({7, 7}, 32), 0);
  EXPECT_EQ(h200().backward_ps({0, 0}, 32), 0);
  EXPECT_EQ(h200().forward_ps({0, 4096}, 0), 0);
  EXPECT_EQ(h200().forward_call_ps({}, 32), 0);
  EXPECT_EQ(h200().backward_call_ps({{5, 5}, {9, 9}}, 32), 0);
}

TEST(DeviceProfile, TakesTimeForTheSmallestEntryEvenWithoutAConstant) {
  DeviceProfileData data = h200().data();
  data.forward.entry_ps = 0;
  data.backward.entry_ps = 0;
  const DeviceProfile profile(data);
  EXPECT_GE(profile.forward_ps({0, 1}, 1), 1);
  EXPECT_GE(profile.backward_ps({0, 1}, 1), 1);
}

TEST(DeviceProfile, GrowsWithTheQueriesAtAFixedEnd) {
  for (const std::int64_t end : {644, 4096, 32768, 262144, 1048576}) {
    for (const std::int32_t heads : {1, 8, 32}) {
      std::int64_t forward = 0;
      std::int64_t backward = 0;
      // Up to 15/16 of the keys: near the whole sample one more query adds so little work that the
      // rate's rise from one node to the next may outweigh it (docs/device_profiles.md).
      for (std::int64_t queries = 1; queries <= end / 16 * 15; queries += 1 + queries / 16) {
        SCOPED_TRACE(testing::Message() << queries << " of " << end << ", heads " << heads);
        const TokenRange range = {end - queries, end};
        ASSERT_GT(h200().forward_ps(range, heads), forward);
        ASSERT_GT(h200().backward_ps(range, heads), backward);
        forward = h200().forward_ps(range, heads);
        backward = h200().backward_ps(range, heads);
      }
      EXPECT_GT(h200().forward_ps({0, end}, heads), forward);
      EXPECT_GT(h200().backward_ps({0, end}, heads), backward);
    }
  }
}

TEST(DeviceProfile, FitsSixtyFourBitsForAMillionTokensOnEveryOf256Workers) {
  const std::int64_t entry = h200().backward_ps({0, 1048576}, 64);
  EXPECT_NEAR(static_cast<double>(entry) / (549756338176.0 * 64 * 1280 / 524900 * 1000), 1.0,
              kPrecision);
  EXPECT_LT(entry, DeviceProfile::kMaxEntryPs / 256);
}

TEST(DeviceProfile, SaturatesInsteadOfOverflowing) {
  DeviceProfileData slow = h200().data();
  slow.forward.rates = {{1}, {1}, {1}, {1}};
  const DeviceProfile profile = DeviceProfile(slow).for_shape({4096, 1, kMaxHeadDim, kMaxHeadDim});
  EXPECT_EQ(profile.forward_ps({0, DeviceProfile::kMaxSampleTokens}, kMaxHeads),
            DeviceProfile::kMaxEntryPs);
}

TEST(DeviceProfile, AdditionsTakeAsLongAsTheirBytes) {
  DeviceProfileData data = h200().data();
  data.add_mb_per_s = 2000;
  EXPECT_EQ(DeviceProfile(data).add_ps(3000), 1'500'000);
  EXPECT_EQ(DeviceProfile(data).add_ps(0), 0);
  data.add_mb_per_s = 1;
  EXPECT_EQ(DeviceProfile(data).add_ps(std::numeric_limits<std::int64_t>::max()),
            DeviceProfile::kMaxEntryPs);
  data.add_mb_per_s = 0;
  EXPECT_THROW(DeviceProfile{data}, ConfigError);
}

TEST(DeviceProfile, RefusesEntriesOutsideItsRange) {
  EXPECT_THROW(h200().forward_ps({-1, 5}, 1), InternalError);
  EXPECT_THROW(h200().forward_ps({0, DeviceProfile::kMaxSampleTokens + 1}, 1), InternalError);
  EXPECT_THROW(h200().forward_ps({0, 5}, -1), InternalError);
  EXPECT_THROW(h200().forward_ps({0, 5}, kMaxHeads + 1), InternalError);
}

TEST(DeviceProfile, ScalesOtherDimensionsByFlops) {
  const DeviceProfile half = h200().for_shape({32, 8, 64, 64});
  const DeviceProfile wide = h200().for_shape({32, 8, 192, 128});
  const TokenRange queries = {4096, 65536};
  const std::int64_t constant = h200().data().forward.entry_ps;
  const auto compute = static_cast<double>(h200().forward_ps(queries, 16) - constant);
  EXPECT_NEAR(static_cast<double>(half.forward_ps(queries, 16) - constant), compute / 2, 1.0);
  EXPECT_NEAR(static_cast<double>(wide.forward_ps(queries, 16) - constant), compute * 1.25, 1.0);
  EXPECT_THROW(h200().for_shape({32, 5, 128, 128}), ConfigError);
}

// Pins the values: a compiler or platform that computes others makes other plans.
TEST(DeviceProfile, IsTheSameEverywhere) {
  Rng rng(7);
  std::uint64_t sum = 0;
  for (int trial = 0; trial < 10000; ++trial) {
    const auto end = static_cast<std::int64_t>(1 + rng.below(1 << 20));
    const auto begin = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(end)));
    const auto heads = static_cast<std::int32_t>(1 + rng.below(64));
    const std::int64_t forward = h200().forward_ps({begin, end}, heads);
    sum = sum * 31 + static_cast<std::uint64_t>(forward + h200().backward_ps({begin, end}, heads));
  }
  EXPECT_EQ(sum, 12056867333878352136u);
}

}  // namespace
}  // namespace libra
