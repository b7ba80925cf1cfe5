#include "libra/cli/planned_timeline.h"

#include <gtest/gtest.h>

namespace libra::cli {
namespace {

TEST(PlannedTimeline, ShowsComputationBesideExchangeAndBackwardAfterTheSlowestForward) {
  // Worker 0: local 2 ms, one chunk of 3 under an exchange of 1, return 1. Worker 1 only computes.
  const WorkerSchedule busy{
      {{{0, 0.002}, {0.002, 0.005}, {0.006, 0.006}}, {{0, 0}, {0.002, 0.003}, {0.005, 0.006}}},
      {{{0, 0.001}, {0.001, 0.001}, {0.001, 0.001}}, {{0, 0}, {0.001, 0.001}, {0.001, 0.001}}}};
  const WorkerSchedule alone{
      {{{0, 0.001}, {0.001, 0.001}, {0.001, 0.001}}, {{0, 0}, {0, 0}, {0.001, 0.001}}},
      {{{0, 0.004}, {0.004, 0.004}, {0.004, 0.005}}, {{0, 0}, {0, 0}, {0.004, 0.004}}}};
  const TraceProcess process = planned_timeline("reserve, planned", {busy, alone});
  ASSERT_EQ(process.tracks.size(), 4U);
  const std::vector<TraceSlice>& compute = process.tracks[0].slices;
  ASSERT_EQ(compute.size(), 3U);
  EXPECT_EQ(compute[0].name, "forward local");
  EXPECT_EQ(compute[1].name, "forward chunk 0");
  EXPECT_EQ(compute[1].begin_ns, 2'000'000);
  EXPECT_EQ(compute[1].end_ns, 5'000'000);
  EXPECT_EQ(compute[2].name, "backward local");
  EXPECT_EQ(compute[2].begin_ns, 6'000'000);
  const std::vector<TraceSlice>& exchange = process.tracks[1].slices;
  ASSERT_EQ(exchange.size(), 2U);
  EXPECT_EQ(exchange[1].begin_ns, 5'000'000);
  EXPECT_EQ(exchange[1].end_ns, 6'000'000);
  EXPECT_EQ(process.tracks[2].slices[1].begin_ns, 6'000'000);
  EXPECT_EQ(process.tracks[2].slices[2].name, "backward additions");
  EXPECT_EQ(process.tracks[2].slices[2].end_ns, 11'000'000);
  EXPECT_TRUE(process.tracks[3].slices.empty());
}

}  // namespace
}  // namespace libra::cli
