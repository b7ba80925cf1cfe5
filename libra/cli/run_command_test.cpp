#include <gmock/gmock.h>

#include "libra/cli/test_program.h"
#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

using testing::HasSubstr;

constexpr const char* kTiny = " --scale-lengths 1/2048 --q-heads 8 --kv-heads 2 --head-dim 16 ";

std::string tiny_run(const std::string& more) { return "run " + small_job() + kTiny + more; }

TEST(RunCommandTest, CheckPassesInEveryPrecision) {
  for (const std::string dtype : {"fp64", "fp32", "bf16"}) {
    SCOPED_TRACE(dtype);
    const auto json = json_of(tiny_run("--check --dtype " + dtype));
    EXPECT_EQ(json["ok"], true);
    EXPECT_EQ(json["checked"], true);
    EXPECT_EQ(json["dtype"], dtype);
    for (const char* output : {"o", "lse", "dq", "dk", "dv"}) {
      EXPECT_LE(json["max_abs_error"][output].get<double>(),
                json["allowed_error"][output].get<double>())
          << output;
    }
  }
}

TEST(RunCommandTest, EveryPlacerAndHomeLayoutIsRight) {
  for (const std::string home : {"contiguous", "zigzag-row", "zigzag-document"}) {
    SCOPED_TRACE(home);
    const auto json =
        json_of(tiny_run("--check --dtype fp64 --placer none,ulysses,paper,reserve,balanced "
                         "--backward refetch --tp 2 --home " +
                         home));
    EXPECT_EQ(json["placers"].size(), 5U);
    EXPECT_EQ(json["ok"], true);
  }
}

TEST(RunCommandTest, CpuSecondsOfEveryWorkerBeforeAndAfter) {
  const auto json = json_of(tiny_run(""));
  EXPECT_EQ(json["cpu_seconds"]["before"].size(), 4U);
  EXPECT_EQ(json["cpu_seconds"]["after"].size(), 4U);
  EXPECT_EQ(json["cpu_seconds"]["before"], json["placers"]["none"]["cpu_seconds"]);
  EXPECT_EQ(json["cpu_seconds"]["after"], json["placers"]["balanced"]["cpu_seconds"]);
  for (const auto& seconds : json["cpu_seconds"]["after"]) EXPECT_GT(seconds.get<double>(), 0);
  EXPECT_EQ(json["checked"], false);
  EXPECT_FALSE(json.contains("max_abs_error"));
}

TEST(RunCommandTest, TextShowsScaleWorkersAndComparison) {
  const Result result = libra(tiny_run("--check"));
  EXPECT_EQ(result.code, 0);
  for (const char* text : {"lengths x 1/2048: sequences of 182 tokens, blocks of 2", "worker",
                           "max/mean CPU", "slowest worker: ", "check: ok"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST(RunCommandTest, ThePoolOfTheHeaviestSequenceIsChosenUnlessOneIsNamed) {
  const auto heaviest = json_of(tiny_run(""));
  const auto named = json_of(tiny_run("--which-pool 7"));
  EXPECT_EQ(named["which_pool"], 7);
  EXPECT_NE(heaviest["placers"]["none"]["fingerprint"], named["placers"]["none"]["fingerprint"]);
  EXPECT_GT(heaviest["placers"]["none"]["max_over_mean"].get<double>(),
            named["placers"]["none"]["max_over_mean"].get<double>());
}

TEST(RunCommandTest, TraceHasAProcessPerPlacerAndNamedWorkers) {
  const TempDir folder;
  const std::string file = folder.path() + "/trace.json";
  ASSERT_EQ(libra(tiny_run(""), {"--trace", file}).code, 0);
  std::ifstream stream(file);
  const auto trace = nlohmann::json::parse(stream);
  std::vector<std::string> processes;
  std::size_t local = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["name"] == "forward local") ++local;
    if (event["ph"] == "X") {
      EXPECT_GE(event["ts"].get<double>(), 0);
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
  }
  EXPECT_THAT(processes, testing::ElementsAre("none", "balanced"));
  EXPECT_GE(local, 4U);
}

TEST(RunCommandTest, FaithfulRunsNoneAndThePapersPlacer) {
  const auto json = json_of(tiny_run("--check --faithful"));
  EXPECT_TRUE(json["placers"].contains("none"));
  EXPECT_TRUE(json["placers"].contains("paper"));
  EXPECT_EQ(json["ok"], true);
}

TEST(RunCommandTest, SamplesOfLengthZeroAndOneAndTrailingPaddingAreRight) {
  const TempDir folder;
  const std::string corpus = folder.write("odd.txt", "0\n1\n1\n7\n0\n30\n1\n13\n");
  const auto json = json_of(
      "run --seq-len 40 --gbs 2 --dp 2 --cp 2 --pool 2 --block 4 --order file-order --check "
      "--dtype fp64 --scale-lengths 1/1 --q-heads 4 --kv-heads 2 --head-dim 8 --chunks 2",
      {"--corpus", corpus});
  EXPECT_EQ(json["ok"], true);
}

}  // namespace
}  // namespace libra::cli
