#include "libra/sim/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "libra/base/index.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

using ::testing::ElementsAre;

// Nodes of two GPUs; a byte takes 1 ns inside a node and 10 ns between nodes.
const Cluster kCluster = {"toy", 2, 1, 0.1, 0, 0, "h200"};
constexpr double kNs = 1e-9;

TEST(FlowTable, AFlowTakesItsBytesOverTheRateOfItsLink) {
  FlowTable flows(4, kCluster, 0);
  flows.add(0, 1, 100, 10);
  flows.add(2, 1, 0, 7);
  flows.finish();
  const std::vector<double> seconds = flows.seconds({.q_out = 3, .kv_out = 5});
  EXPECT_DOUBLE_EQ(seconds[0], 350 * kNs);
  EXPECT_DOUBLE_EQ(seconds[1], 350 * kNs);  // 35 bytes by the network take as long
  EXPECT_DOUBLE_EQ(seconds[2], 350 * kNs);
  EXPECT_DOUBLE_EQ(seconds[3], 0);
}

TEST(FlowTable, FlowsOfOnePortShareIt) {
  FlowTable fan(3, {"toy", 8, 1, 1, 0, 0, "h200"}, 0);
  fan.add(0, 1, 100, 0);
  fan.add(0, 2, 50, 0);
  fan.finish();
  const std::vector<double> seconds = fan.seconds({.q_out = 1});
  EXPECT_DOUBLE_EQ(seconds[0], 150 * kNs);
  EXPECT_DOUBLE_EQ(seconds[1], 150 * kNs);
  EXPECT_DOUBLE_EQ(seconds[2], 150 * kNs);  // in proportion, so both end together
}

TEST(FlowTable, DirectionsOfALinkDoNotShare) {
  FlowTable flows(2, kCluster, 0);
  flows.add(0, 1, 100, 0);
  flows.finish();
  EXPECT_DOUBLE_EQ(flows.seconds({.q_out = 1, .q_back = 2})[0], 200 * kNs);
}

TEST(FlowTable, TheFirstGpuDecidesWhichFlowsLeaveTheNode) {
  for (const std::int64_t first_gpu : {0, 1}) {
    FlowTable flows(2, kCluster, first_gpu);
    flows.add(0, 1, 8, 0);
    flows.finish();
    const LinkBytes bytes = flows.bytes({.q_out = 1, .q_back = 1});
    EXPECT_EQ(bytes.nvlink, first_gpu == 0 ? 16 : 0);
    EXPECT_EQ(bytes.inter_node, first_gpu == 0 ? 0 : 16);
  }
}

TEST(FlowTable, LatencyIsAddedOncePerPhase) {
  FlowTable flows(2, {"toy", 2, 1, 1, 5, 10, "h200"}, 0);
  flows.add(0, 1, 1000, 0);
  flows.finish();
  EXPECT_DOUBLE_EQ(flows.seconds({.q_out = 1})[1], 6e-6);
  EXPECT_DOUBLE_EQ(flows.seconds({.kv_out = 1})[1], 0);  // nothing of it is there
}

TEST(FlowTable, APhaseAfterAnotherBeginsWhenItsSendersAreDone) {
  FlowTable flows(4, kCluster, 0);
  flows.add(2, 1, 0, 10);     // across
  flows.add(1, 0, 0, 0, 10);  // passed on
  flows.finish();
  const std::vector<double> before = flows.seconds({.kv_out = 1});
  EXPECT_DOUBLE_EQ(before[1], 100 * kNs);
  EXPECT_DOUBLE_EQ(before[0], 0);
  const std::vector<double> seconds = flows.seconds_after(before, {.relay_out = 1});
  EXPECT_DOUBLE_EQ(seconds[0], 110 * kNs);
  EXPECT_DOUBLE_EQ(seconds[1], 110 * kNs);
  EXPECT_DOUBLE_EQ(seconds[2], 100 * kNs);
  EXPECT_DOUBLE_EQ(seconds[3], 0);
}

TEST(FlowTable, OutwardAreFlowsOfWhatThePhaseTakesOut) {
  FlowTable flows(3, kCluster, 0);
  flows.add(1, 0, 0, 5);
  flows.add(0, 1, 7, 0);
  flows.add(1, 2, 0, 0, 3);
  flows.finish();
  EXPECT_THAT(flows.outward({.q_out = 1, .kv_out = 1}), ElementsAre(Sending{0, 1}, Sending{1, 0}));
  EXPECT_THAT(flows.outward({.kv_out = 1, .q_back = 1}), ElementsAre(Sending{1, 0}));
  EXPECT_THAT(flows.outward({.relay_out = 1}), ElementsAre(Sending{1, 2}));
  EXPECT_THAT(flows.outward({}), ElementsAre());
}

TEST(FlowTable, NoPhaseIsShorterThanItsBusiestPort) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    FlowTable flows(6, kCluster, static_cast<std::int64_t>(rng.below(2)));
    for (int i = 0; i < 20; ++i) {
      flows.add(static_cast<std::int32_t>(rng.below(6)), static_cast<std::int32_t>(rng.below(6)),
                static_cast<std::int64_t>(rng.below(100)),
                static_cast<std::int64_t>(rng.below(100)));
    }
    flows.finish();
    const RowBytes row{1, 2, 3, 4};
    const std::vector<double> seconds = flows.seconds(row);
    EXPECT_DOUBLE_EQ(*std::max_element(seconds.begin(), seconds.end()),
                     flows.busiest_port_seconds(row));
  }
}

}  // namespace
}  // namespace libra
