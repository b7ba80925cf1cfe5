#include "libra/runtime/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

namespace libra {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_of(const std::vector<TraceSlice>& slices) {
  std::vector<std::string> names;
  names.reserve(slices.size());
  for (const TraceSlice& slice : slices) names.push_back(slice.name);
  return names;
}

WorkerTrace worker() {
  WorkerTrace trace;
  trace.events = {{"forward local", -1, {1000, 10}, {3000, 1510}},
                  {"forward chunk", 2, {3000, 1510}, {4000, 2510}}};
  trace.records = {{{0, Phase::kAgree, 0, 0}, 0, 500, 8, 8},
                   {{0, Phase::kForwardDispatch, 0, 0}, 1000, 2500, 64, 0},
                   {{0, Phase::kForwardDispatch, 1, 0}, 2000, 3500, 0, 32},
                   {{0, Phase::kForwardReturn, 0, 0}, 2500, 3000, 0, 0}};
  return trace;
}

TEST(TraceTest, EachWorkerHasAStreamAndItsExchangesBeside) {
  const TraceProcess process = measured_timeline("reserve", {worker(), {}});
  ASSERT_EQ(process.tracks.size(), 4U);
  EXPECT_EQ(process.tracks[0].name, "worker 0");
  EXPECT_THAT(names_of(process.tracks[0].slices), ElementsAre("forward local", "forward chunk 2"));
  EXPECT_EQ(process.tracks[1].name, "worker 0 exchange");
  EXPECT_THAT(names_of(process.tracks[1].slices),
              ElementsAre("agreement on the plan 0", "forward dispatch 0"));
  EXPECT_EQ(process.tracks[2].name, "worker 0 exchange 2");
  EXPECT_THAT(names_of(process.tracks[2].slices), ElementsAre("forward dispatch 1"));
  EXPECT_EQ(process.tracks[3].name, "worker 1");
  EXPECT_THAT(process.tracks[3].slices, IsEmpty());
}

TEST(TraceTest, SlicesOfATrackNeverOverlapAndNoneIsLost) {
  std::vector<TraceSlice> slices;
  slices.reserve(40);
  for (int i = 0; i < 40; ++i) {
    slices.push_back({std::to_string(i), i * 7 % 40, i * 7 % 40 + 1 + i % 5, {}});
  }
  std::size_t found = 0;
  for (const TraceTrack& track : lay_out("lane", slices)) {
    found += track.slices.size();
    for (std::size_t i = 1; i < track.slices.size(); ++i) {
      EXPECT_LE(track.slices[i - 1].end_ns, track.slices[i].begin_ns) << track.name;
    }
  }
  EXPECT_EQ(found, slices.size());
}

TEST(TraceTest, JsonHasCompleteEventsInMicrosecondsAndNames) {
  const auto json = nlohmann::json::parse(trace_to_json({measured_timeline("none", {worker()})}));
  std::vector<std::string> processes;
  std::vector<std::string> threads;
  double dispatch_us = 0;
  double dispatched_bytes = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["name"] == "thread_name") threads.push_back(event["args"]["name"]);
    if (event["name"] != "forward dispatch 0") continue;
    EXPECT_EQ(event["ph"], "X");
    dispatch_us = event["dur"];
    dispatched_bytes = event["args"]["bytes_sent"];
  }
  EXPECT_THAT(processes, ElementsAre("none"));
  EXPECT_THAT(threads, ElementsAre("worker 0", "worker 0 exchange", "worker 0 exchange 2"));
  EXPECT_EQ(dispatch_us, 1.5);
  EXPECT_EQ(dispatched_bytes, 64);
}

TEST(TraceTest, TracksOfAllProcessesAreToldApart) {
  const auto json = nlohmann::json::parse(
      trace_to_json({measured_timeline("none", {worker()}),
                     measured_timeline("paper", std::vector<WorkerTrace>(1))}));
  std::set<std::pair<int, int>> tracks;
  std::size_t named = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] != "thread_name") continue;
    tracks.emplace(event["pid"].get<int>(), event["tid"].get<int>());
    ++named;
  }
  EXPECT_EQ(tracks.size(), named);
  EXPECT_EQ(named, 4U);
}

}  // namespace
}  // namespace libra
