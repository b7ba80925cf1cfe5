#include "libra/transport/mpi/wire.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "libra/base/error.h"

namespace libra::mpi {
namespace {

constexpr std::int64_t kLargestCount = std::numeric_limits<int>::max();

TEST(WireTag, IsDistinctForAllTagsInFlight) {
  std::set<std::int32_t> seen;
  std::size_t tags = 0;
  for (const std::int32_t step : {0, 1, 1023, 4095})
    for (int phase = 0; phase <= static_cast<int>(Phase::kGradientReturn); ++phase)
      for (std::int32_t chunk = 0; chunk < 256; ++chunk)
        for (std::int32_t round = 0; round < 16; ++round, ++tags)
          seen.insert(wire_tag({step, static_cast<Phase>(phase), chunk, round}));
  EXPECT_EQ(seen.size(), tags);
  EXPECT_EQ(*seen.begin(), 0);
  EXPECT_LE(*seen.rbegin(), kLargestWireTag);
}

TEST(WireTag, StepsRepeatAfter4096) {
  EXPECT_EQ(wire_tag({.step = 7, .chunk = 3}), wire_tag({.step = 7 + 4096, .chunk = 3}));
}

TEST(WireCounts, AreBoundedByMpisIntegers) {
  EXPECT_NO_THROW(check_counts({nullptr, kLargestCount, kLargestCount, kLargestCount}));
  EXPECT_THROW(check_counts({nullptr, kLargestCount + 1, 1, 1}), ConfigError);
  EXPECT_THROW(check_counts({nullptr, 1, kLargestCount + 1, 0}), ConfigError);
}

}  // namespace
}  // namespace libra::mpi
