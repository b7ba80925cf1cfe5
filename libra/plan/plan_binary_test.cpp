#include "libra/plan/plan_binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "libra/base/error.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

PoolPlan random_plan(std::uint64_t seed) {
  auto [options, sequences] = testing::random_problem(seed, 60);
  return make_plan(options, sequences);
}

// Nothing if the bytes are refused as they should be.
std::optional<PoolPlan> decoded(std::span<const std::byte> bytes) {
  try {
    return decode_plan(bytes);
  } catch (const PlanError&) {
    return std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

TEST(PlanBinary, ReadsBackWhatWasWritten) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed);
    const std::vector<std::byte> bytes = encode_plan(plan);
    EXPECT_EQ(encode_plan(plan), bytes);
    EXPECT_EQ(decode_plan(bytes), plan);
  }
}

TEST(PlanBinary, CutShortAnywhereIsRefused) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const std::vector<std::byte> bytes = encode_plan(random_plan(seed));
    for (std::size_t size = 0; size < bytes.size(); ++size)
      ASSERT_FALSE(decoded(std::span(bytes).first(size))) << "cut to " << size;
  }
}

TEST(PlanBinary, WithChangedBytesIsRefused) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 1);
    const PoolPlan plan = random_plan(seed);
    const std::vector<std::byte> bytes = encode_plan(plan);
    for (int i = 0; i < 60; ++i) {
      std::vector<std::byte> damaged = bytes;
      const std::uint64_t changes = 1 + rng.below(3);
      for (std::uint64_t c = 0; c < changes; ++c)
        damaged[rng.below(damaged.size())] ^= static_cast<std::byte>(1 + rng.below(255));
      const std::optional<PoolPlan> found = decoded(damaged);
      if (found.has_value()) {
        ASSERT_EQ(*found, plan);
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 3000);
}

TEST(PlanBinary, WithBytesAppendedIsRefused) {
  std::vector<std::byte> bytes = encode_plan(random_plan(1));
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decoded(bytes));
}

std::string error_of(std::vector<std::byte> bytes) {
  try {
    decode_plan(bytes);
    return "accepted";
  } catch (const PlanError& error) {
    return error.what();
  }
}

TEST(PlanBinary, ErrorsSayWhatIsWrong) {
  const std::vector<std::byte> good = encode_plan(random_plan(1));
  EXPECT_THAT(error_of({}), HasSubstr("do not begin with LIBRPLAN"));
  std::vector<std::byte> bytes = good;
  bytes[8] = std::byte{9};
  EXPECT_THAT(error_of(bytes), HasSubstr("format version 9, this program reads version 3"));
  bytes = good;
  bytes.resize(100);
  EXPECT_THAT(error_of(bytes), HasSubstr("cut short at byte 96 of 100"));
  bytes = good;
  bytes.back() ^= std::byte{1};
  EXPECT_THAT(error_of(bytes), HasSubstr("fingerprint does not match"));
}

// The numbers of a tiny plan, so that a change of the format does not go unnoticed. The last one,
// the fingerprint, differs between versions of the program.
TEST(PlanBinary, OfATinyPlanIsAsDocumented) {
  PlanOptions options;
  options.shape = {4, 2, 8, 16};
  options.cp = 2;
  options.block_tokens = 6;
  options.chunks = 1;
  options.home = HomeKind::kExplicit;
  options.explicit_runs = {{{{4, 10}}, {{0, 4}}}};
  options.placer = PlacerKind::kNone;
  options.return_lse = true;
  const std::vector<std::byte> bytes = encode_plan(make_plan(options, {{10, {3, 0, 5}}}));
  const std::vector<std::int64_t> expected = {3,  // format version
                                              4, 2,  8,      16, 2,  2, 1, 3, 6, 2, 1,
                                              0, 1,  30'000, 0,  1,  1, 0, 8, 0, 0, 0,  // options
                                              1, 2,  1,      4,  10, 1, 0, 4,  // explicit runs
                                              1, 10, 3,      3,  0,  5,        // sequences
                                              2, 28, 14,                       // block costs
                                              4, 0,  0,      1,  1};           // destinations
  ASSERT_EQ(bytes.size(), 8 + 8 * expected.size() + 8);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 8), "LIBRPLAN");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::uint64_t number = 0;
    for (std::size_t byte = 8; byte > 0; --byte)
      number = number << 8 | static_cast<std::uint64_t>(bytes[8 + 8 * i + byte - 1]);
    EXPECT_EQ(static_cast<std::int64_t>(number), expected[i]) << "number " << i;
  }
}

}  // namespace
}  // namespace libra
