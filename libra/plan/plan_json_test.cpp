#include "libra/plan/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "libra/base/error.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

PoolPlan random_plan(std::uint64_t seed) {
  auto [options, sequences] = testing::random_problem(seed, 60);
  return make_plan(options, sequences);
}

TEST(PlanJson, ReadsBackWhatWasWritten) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed);
    EXPECT_EQ(plan_from_json(plan_to_json(plan)), plan);
  }
}

std::string error_of(const std::string& text) {
  try {
    plan_from_json(text);
    return "accepted";
  } catch (const PlanError& error) {
    return error.what();
  } catch (const ConfigError& error) {
    return std::string("config: ") + error.what();
  }
}

TEST(PlanJson, CutShortAnywhereIsRefused) {
  const std::string text = plan_to_json(random_plan(2));
  for (std::size_t size = 0; size < text.size(); size += 1 + size / 200)
    ASSERT_NE(error_of(text.substr(0, size)), "accepted") << "cut to " << size;
}

TEST(PlanJson, WithChangedBytesIsRefusedOrTheSame) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed, 1);
    const PoolPlan plan = random_plan(seed);
    const std::string text = plan_to_json(plan);
    for (int i = 0; i < 40; ++i) {
      std::string damaged = text;
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
      try {
        ASSERT_EQ(plan_from_json(damaged), plan);
      } catch (const PlanError&) {
      } catch (const ConfigError&) {
      }
    }
  }
}

// Every field that is read, with every other kind of value in its place.
TEST(PlanJson, AWrongFieldIsNamed) {
  const Json good = Json::parse(plan_to_json(make_plan(PlanOptions{}, {{10, {4, 5}}})));
  const std::vector<Json> wrong = {
      nullptr, "text", 1.5, -1e300, 18446744073709551615ULL, Json::object(), Json::array({1.5})};
  for (const char* path :
       {"/sequences", "/sequences/0/tokens", "/sequences/0/sample_tokens",
        "/sequences/0/sample_tokens/0", "/block_costs", "/block_costs/0", "/destination",
        "/destination/0", "/options", "/options/q_heads", "/options/block_tokens", "/options/cp",
        "/options/return_lse", "/options/storage", "/fingerprint"}) {
    for (const Json& value : wrong) {
      SCOPED_TRACE(::testing::Message() << path << " = " << value);
      Json json = good;
      json[Json::json_pointer(path)] = value;
      EXPECT_NE(error_of(json.dump()), "accepted");
    }
  }
  Json json = good;
  json["options"]["cp"] = (std::int64_t{1} << 32) + 1;
  EXPECT_THAT(error_of(json.dump()), HasSubstr("'cp'"));
  json = good;
  json["options"].erase("chunks");
  EXPECT_THAT(error_of(json.dump()), HasSubstr("'chunks'"));
  json = good;
  json["options"]["placer"] = "best";
  EXPECT_THAT(error_of(json.dump()), HasSubstr("none, ulysses, paper, reserve"));
}

TEST(PlanJson, ThatIsNoPlanIsRefused) {
  EXPECT_THAT(error_of("[1]"), HasSubstr("'format' is not libra-plan-3"));
  EXPECT_THAT(error_of("{}"), HasSubstr("'format' is not libra-plan-3"));
  EXPECT_THAT(error_of("{\"format\": 1}"), HasSubstr("'format' is not libra-plan-3"));
  EXPECT_THAT(error_of("nonsense"), HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{\"format\": 1e3080}"), HasSubstr("too large for a double"));
}

TEST(PlanJson, TellsWhatFollowsFromThePlan) {
  const PoolPlan plan = random_plan(7);
  const Json derived = Json::parse(plan_to_json(plan))["derived"];
  EXPECT_EQ(derived["workers"], plan.workers());
  EXPECT_EQ(derived["load"], plan.placement.load);
  EXPECT_EQ(derived["q_moves"].size(), plan.exchange.q_moves.size());
  EXPECT_EQ(derived["memory"].size(), static_cast<std::size_t>(plan.workers()));
}

}  // namespace
}  // namespace libra
