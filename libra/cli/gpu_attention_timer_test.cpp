#include "libra/cli/gpu_attention_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace libra::cli {
namespace {

constexpr std::int64_t kRows = 1 << 17;

// Whether two entries share keys of a KV head.
bool share_keys(const TimedCall& call) {
  std::vector<Entry> entries = call.backward;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.kv_head != b.kv_head ? a.kv_head < b.kv_head : a.kv_row < b.kv_row;
  });
  return std::adjacent_find(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
           return a.kv_head == b.kv_head && b.kv_row < a.kv_row + a.keys;
         }) != entries.end();
}

TEST(TimedCall, IsOfWholeSamplesIfTheRuntimeWouldWriteTheirGradients) {
  for (const std::int32_t heads : {4, 8, 16, 32}) {
    EXPECT_TRUE(saturating_call({0, 644}, heads, kRows, false).whole) << heads;
    EXPECT_TRUE(saturating_call({0, 16384}, heads, kRows, false).whole) << heads;
    EXPECT_FALSE(saturating_call({0, 32768}, heads, kRows, false).whole) << "too long";
    EXPECT_FALSE(saturating_call({644, 1288}, heads, kRows, false).whole) << "no whole sample";
  }
  EXPECT_FALSE(saturating_call({0, 644}, 1, kRows, false).whole) << "four share a KV head";
}

TEST(TimedCall, OfWholeSamplesSharesNoKeys) {
  for (const std::int64_t end : {100, 644, 4096, 16384}) {
    for (const std::int32_t heads : {1, 2, 4, 8, 16, 32}) {
      const TimedCall call = saturating_call({0, end}, heads, kRows, false);
      EXPECT_FALSE(call.whole && share_keys(call)) << end << ", " << heads;
    }
  }
}

}  // namespace
}  // namespace libra::cli
