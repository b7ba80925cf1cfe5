#include "libra/sim/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libra/base/error.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::flat_device;
using ::testing::HasSubstr;
using testing::tiny_scenario;

std::string complaint(const Scenario& scenario) {
  try {
    check_scenario(scenario);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckScenario, NamesTheRuleThatIsBroken) {
  EXPECT_EQ(complaint(tiny_scenario()), "");
  Scenario scenario = tiny_scenario();
  scenario.gbs = 3;
  EXPECT_THAT(complaint(scenario), HasSubstr("DP"));
  scenario = tiny_scenario();
  scenario.ep = 2;
  EXPECT_THAT(complaint(scenario), HasSubstr("has no experts: nearest legal value 1"));
  scenario.linear.experts = 3;
  EXPECT_THAT(complaint(scenario), HasSubstr("EP 2 does not divide the number of experts"));
  scenario = tiny_scenario();
  scenario.pp = 3;
  EXPECT_THAT(complaint(scenario), HasSubstr("PP"));
  scenario = tiny_scenario();
  scenario.seq_tokens = 0;
  EXPECT_THAT(complaint(scenario), HasSubstr("the sequence length"));
  scenario = tiny_scenario();
  scenario.wlb_token_cap = 0.5;
  EXPECT_THAT(complaint(scenario), HasSubstr("between 1 and 16"));
}

TEST(LargestPool, IsADivisor) {
  EXPECT_EQ(largest_pool(32, 8), 8);
  EXPECT_EQ(largest_pool(12, 8), 6);
  EXPECT_EQ(largest_pool(4, 8), 4);
  EXPECT_EQ(largest_pool(7, 4), 1);
}

TEST(Environment, WithoutVariationAllGpusAreAlike) {
  const Environment environment(tiny_scenario(), flat_device());
  EXPECT_EQ(environment.slowness(3, 5), 1);
}

TEST(Environment, VariationHasTheGivenDeviation) {
  Scenario scenario = tiny_scenario();
  scenario.cluster.gpu_variation = 0.03;
  scenario.cluster.step_variation = 0.04;
  const Environment environment(scenario, flat_device());
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const double off = environment.slowness(i, i) - 1;
    sum += off;
    squares += off * off;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.002);  // 0.05 / sqrt(20000), five times over
  EXPECT_NEAR(squares / kDraws, 0.05 * 0.05, 0.05 * 0.05 / 10);
  EXPECT_EQ(environment.slowness(7, 1), environment.slowness(7, 1));
  EXPECT_NE(environment.slowness(7, 1), environment.slowness(7, 2));
}

TEST(LinearShape, HasTheParametersOfTheModels) {
  const ModelShape dense = find_model("qwen3-8b");
  const LinearShape linear = find_linear_shape("qwen3-8b");
  EXPECT_EQ(linear.projection_parameters(dense), 4096 * (4096 + 1024 + 1024 + 4096));
  EXPECT_EQ(linear.active_parameters(dense),
            linear.projection_parameters(dense) + 3 * 4096 * 12288);
  const ModelShape sparse = find_model("qwen3-30b-a3b");
  const LinearShape experts = find_linear_shape("qwen3-30b-a3b");
  EXPECT_EQ(experts.active_parameters(sparse),
            2048 * (4096 + 512 + 512 + 4096) + 8 * 3 * 2048 * 768 + 2048 * 128);
  EXPECT_THROW(find_linear_shape("qwen3-9b"), ConfigError);
}

}  // namespace
}  // namespace libra
