#include "libra/sim/simulation_checks.h"

#include <gtest/gtest.h>

#include "libra/base/check.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::tiny_scenario;

MethodFigures figures(const char* name, double ms, double step_s) {
  MethodFigures f;
  f.method = &find_method(name);
  f.straggler = {ms, ms};
  f.step_s = step_s;
  return f;
}

TEST(CheckEqualWork, FindsWhoseWorkDiffers) {
  std::vector<WindowFigures> ideal(2);
  ideal[1].work = 5;
  std::vector<WindowFigures> ours = ideal;
  EXPECT_NO_THROW(check_equal_work(find_method("libra"), ours, ideal));
  ours[1].work = 4;
  EXPECT_THROW(check_equal_work(find_method("libra"), ours, ideal), InternalError);
  EXPECT_NO_THROW(check_equal_work(find_method("wlb"), ours, ideal));  // its samples may wait
}

TEST(CheckBound, LooksAtMeanAndWorstStragglersAndSteps) {
  const Cluster cluster = tiny_scenario().cluster;
  const MethodFigures ideal = figures("ideal", 10, 2);
  EXPECT_NO_THROW(check_bound(cluster, figures("libra", 10, 2), ideal));
  EXPECT_THROW(check_bound(cluster, figures("libra", 9.99, 2), ideal), InternalError);
  EXPECT_THROW(check_bound(cluster, figures("libra", 10, 1.99), ideal), InternalError);
  MethodFigures worst = figures("libra", 10, 2);
  worst.straggler.max_ms = 9.99;
  EXPECT_THROW(check_bound(cluster, worst, ideal), InternalError);
  EXPECT_NO_THROW(check_bound(cluster, figures("wlb", 1, 1), ideal));
}

TEST(CheckBound, AllowsForTheLuckOfFastGpus) {
  Cluster cluster = tiny_scenario().cluster;
  cluster.step_variation = 0.01;
  EXPECT_NO_THROW(check_bound(cluster, figures("libra", 9.6, 2), figures("ideal", 10, 2)));
  EXPECT_THROW(check_bound(cluster, figures("libra", 9.4, 2), figures("ideal", 10, 2)),
               InternalError);
}

TEST(CheckPoolsOfOne, ComparesMethodsThatDifferInGroupingOnly) {
  Scenario scenario = tiny_scenario();
  std::vector<MethodFigures> methods = {figures("libra-tap", 1, 1),
                                        figures("libra-tap-vrsp", 1, 1)};
  methods[0].forward_bytes = {10, 5};
  EXPECT_NO_THROW(check_pools_of_one(scenario, methods));  // P is 2
  scenario.pool = 1;
  EXPECT_THROW(check_pools_of_one(scenario, methods), InternalError);
  methods[1].forward_bytes = {5, 10};  // the same on other links, as other GPUs have it
  EXPECT_NO_THROW(check_pools_of_one(scenario, methods));
  methods[1].straggler.mean_ms = 2;
  EXPECT_NO_THROW(check_pools_of_one(scenario, methods));  // others of a GA index are other luck
  scenario.dp = 1;
  EXPECT_THROW(check_pools_of_one(scenario, methods), InternalError);
}

TEST(CheckPortRates, FindsTrafficThatNoPortCanMove) {
  PoolTimes times;
  times.workers = {{1, 2, 1, 3}};
  EXPECT_NO_THROW(check_port_rates(times, 2, 3));
  EXPECT_THROW(check_port_rates(times, 2.1, 3), InternalError);
  EXPECT_THROW(check_port_rates(times, 2, 3.1), InternalError);
}

}  // namespace
}  // namespace libra
