#include <gmock/gmock.h>

#include <filesystem>

#include "libra/cli/test_program.h"
#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

using testing::HasSubstr;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What depends on the machine's speed, and nothing else.
nlohmann::json without_times(nlohmann::json json) {
  json.erase("grouping_us");
  json.erase("cost_us");
  for (auto& placer : json["placers"]) placer.erase("plan_us");
  return json;
}

TEST(PlanCommandTest, JsonHasEveryPromisedField) {
  const auto json = json_of("plan --steps 2 " + small_job());
  for (const char* grouping : {"production", "zigzag", "zigzag_swap", "vrsp", "vrsp_refined"}) {
    EXPECT_GE(json["r_minus_1"][grouping].get<double>(), 0) << grouping;
  }
  EXPECT_GT(json["grouping_us"].get<double>(), 0);
  EXPECT_GE(json["r_by_index_minus_1"].get<double>(), 0);
  EXPECT_LE(json["r_by_index_minus_1"].get<double>(),
            json["r_minus_1"]["vrsp_refined"].get<double>());
  EXPECT_EQ(json["pool_order"].size(), 16);
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["ga_indices"], 4);
  EXPECT_EQ(json["pools"], 8);
  EXPECT_EQ(json["at_once"], 2);
  EXPECT_EQ(json["packing_report"]["oversize_documents"].is_number(), true);
  for (const char* placer : {"none", "ulysses", "paper", "balanced"}) {
    SCOPED_TRACE(placer);
    const auto& figures = json["placers"][placer];
    EXPECT_EQ(figures["pools"], 16);
    EXPECT_GE(figures["max_over_mean"]["mean"].get<double>(), 1);
    EXPECT_GE(figures["max_over_mean"]["worst"].get<double>(),
              figures["max_over_mean"]["mean"].get<double>());
    EXPECT_GT(figures["plan_us"].get<double>(), 0);
    EXPECT_GE(figures["bytes_total"].get<double>(), figures["bytes_inter_node"].get<double>());
    EXPECT_GE(figures["bytes_backward_refetch"].get<double>(),
              figures["bytes_backward_keep"].get<double>());
    for (const char* field : {"max_in_bytes", "max_out_bytes", "tiles_moved", "memory"}) {
      EXPECT_TRUE(figures.contains(field)) << field;
    }
  }
}

TEST(PlanCommandTest, BalancingPlacersBalanceWhatNoneDoesNot) {
  const auto json = json_of("plan --steps 3 " + small_job());
  const auto mean = [&json](const char* placer) {
    return json["placers"][placer]["max_over_mean"]["mean"].get<double>();
  };
  EXPECT_GT(mean("none"), 1.5);
  EXPECT_LT(mean("paper"), 1.1);
  EXPECT_LT(mean("balanced"), 1.1);
  EXPECT_EQ(json["placers"]["none"]["tiles_moved"], 0);
  EXPECT_LT(json["r_minus_1"]["vrsp"].get<double>(), json["r_minus_1"]["production"].get<double>());
}

TEST(PlanCommandTest, GroupingAndOrderAreTheUsersChoice) {
  const std::string command = "plan --steps 1 --placer none " + small_job() + " --grouping ";
  const auto emitted = json_of(command + "production");
  const auto by_load = json_of(command + "production --by-load");
  EXPECT_NE(emitted["pool_order"], by_load["pool_order"]);
  EXPECT_LT(by_load["r_by_index_minus_1"].get<double>(),
            emitted["r_by_index_minus_1"].get<double>());
  EXPECT_NE(emitted["pool_order"], json_of(command + "vrsp")["pool_order"]);
}

TEST(PlanCommandTest, SameSeedSamePlansOtherSeedOtherWindows) {
  const std::string command = "plan --steps 1 --placer balanced " + small_job() + " --seed ";
  const auto first = without_times(json_of(command + "1"));
  EXPECT_EQ(first, without_times(json_of(command + "1")));
  EXPECT_NE(first["r_minus_1"], json_of(command + "2")["r_minus_1"]);
}

TEST(PlanCommandTest, InterNodeBytesFollowTheNodesSize) {
  const auto bytes = [](const std::string& nodes) {
    return json_of("plan --steps 1 --placer balanced --gpus-per-node " + nodes + " " +
                   small_job())["placers"]["balanced"];
  };
  EXPECT_EQ(bytes("1")["bytes_inter_node"], bytes("1")["bytes_total"]);
  EXPECT_EQ(bytes("4")["bytes_inter_node"], 0);
  EXPECT_GT(bytes("2")["bytes_inter_node"].get<double>(), 0);
}

TEST(PlanCommandTest, PlacersGetTheirOwnFetchUnlessOneIsNamed) {
  const auto own = json_of("plan --steps 1 " + small_job());
  EXPECT_EQ(own["placers"]["paper"]["fetch"], "whole");
  EXPECT_EQ(own["placers"]["balanced"]["fetch"], "prefix");
  const auto named = json_of("plan --steps 1 --fetch prefix " + small_job());
  EXPECT_EQ(named["placers"]["paper"]["fetch"], "prefix");
}

TEST(PlanCommandTest, FaithfulComparesThePapersPlacerWithoutOurs) {
  const auto json = json_of("plan --steps 1 --faithful " + small_job());
  EXPECT_FALSE(json["placers"].contains("balanced"));
  EXPECT_EQ(json["placers"]["paper"]["fetch"], "whole");
  EXPECT_EQ(json["faithful"], true);
}

TEST(PlanCommandTest, FaithfulTakesFourChunksUnlessTold) {
  const auto chunks = [](const std::string& options, const char* placer) {
    return json_of("plan --steps 1 " + options +
                   small_job())["placers"][placer]["chunks"]["largest"];
  };
  EXPECT_EQ(chunks("", "paper"), 2);
  EXPECT_EQ(chunks("--faithful ", "paper"), 4);
  EXPECT_EQ(chunks("--faithful ", "none"), 2);
  EXPECT_EQ(chunks("--faithful --chunks 1 ", "paper"), 1);
}

TEST(PlanCommandTest, UlyssesIsSkippedWhereHeadsForbidItButAnErrorAlone) {
  const std::string job = "plan --steps 1 --corpus " + mix() +
                          " --seq-len 256K --oversize truncate --gbs 2 --dp 2 --pool 2 --cp 3 ";
  const auto json = json_of(job);
  EXPECT_THAT(json["placers"]["ulysses"]["skipped"].get<std::string>(), HasSubstr("H = CP"));
  EXPECT_TRUE(json["placers"]["balanced"].contains("plan_us"));
  EXPECT_THAT(libra(job).out, HasSubstr("ulysses is left out: placer ulysses needs H = CP"));
  expect_refused(libra(job + "--placer ulysses"), "placer ulysses needs H = CP");
}

TEST(PlanCommandTest, UlyssesTakesAsManyChunksAsItsHeadsAllow) {
  const auto json = json_of("plan --steps 1 --placer none,ulysses --corpus " + mix() +
                            " --seq-len 256K --oversize truncate --gbs 2 --dp 2 --pool 2 --cp 16");
  EXPECT_EQ(json["placers"]["ulysses"]["head_shards"], 16);
  EXPECT_EQ(json["placers"]["ulysses"]["chunks"]["largest"], 2);
}

TEST(PlanCommandTest, SecondsBalanceAnotherCost) {
  const auto json = json_of("plan --steps 1 --cost seconds --placer balanced " + small_job());
  EXPECT_EQ(json["cost"], "seconds");
  EXPECT_LT(json["placers"]["balanced"]["max_over_mean"]["worst"].get<double>(), 1.2);
}

// The figures of `balanced`, of all pools of a window, under a cap of this share of what it takes
// without one.
nlohmann::json capped(double share) {
  const std::string command = "plan --steps 1 --placer balanced --chunks 2 " + small_job();
  const auto free = json_of(command)["placers"]["balanced"];
  const auto cap = static_cast<std::int64_t>(free["memory"]["max_bytes"].get<double>() * share);
  const auto figures = json_of(command + " --memory-cap " + std::to_string(cap));
  EXPECT_LE(figures["placers"]["balanced"]["memory"]["max_bytes"].get<std::int64_t>(), cap);
  return figures["placers"]["balanced"];
}

TEST(PlanCommandTest, WithoutACapEveryPoolUsesTheOptionsAsGiven) {
  const auto free = json_of("plan --steps 1 --placer balanced --chunks 2 " + small_job());
  const auto& figures = free["placers"]["balanced"];
  EXPECT_EQ(figures["chunks"], nlohmann::json({{"smallest", 2}, {"largest", 2}}));
  EXPECT_EQ(figures["refetch_pools"], 0);
  EXPECT_EQ(figures["bytes_backward"], figures["bytes_backward_keep"]);
}

TEST(PlanCommandTest, MoreChunksUnderAMemoryCapAreReported) {
  const auto figures = capped(0.99);
  EXPECT_EQ(figures["chunks"]["smallest"], 2);
  EXPECT_GT(figures["chunks"]["largest"], 2);
}

TEST(PlanCommandTest, RefetchUnderAMemoryCapIsReportedWithItsBytes) {
  const auto figures = capped(0.72);
  EXPECT_GT(figures["refetch_pools"], 0);
  EXPECT_GT(figures["bytes_backward"], figures["bytes_backward_keep"]);
  if (figures["refetch_pools"] == figures["pools"]) {
    EXPECT_EQ(figures["bytes_backward"], figures["bytes_backward_refetch"]);
  }
}

TEST(PlanCommandTest, TextShowsTheRangeOfChunksThatAMemoryCapTook) {
  const std::string job = "plan --steps 1 --placer balanced --chunks 2 " + small_job();
  const auto free = json_of(job)["placers"]["balanced"];
  const auto cap = static_cast<std::int64_t>(free["memory"]["max_bytes"].get<double>() * 0.72);
  const std::string text = libra(job + " --memory-cap " + std::to_string(cap)).out;
  EXPECT_THAT(text, testing::ContainsRegex("balanced  2  [0-9]+-[0-9]+ "));
  EXPECT_THAT(text, testing::ContainsRegex("balanced: [0-9]+ of 8 pools refetch"));
}

TEST(PlanCommandTest, TextHasBothTables) {
  const Result result = libra("plan --steps 1 " + small_job());
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* text : {"16 sequences on DP 4 = 8 pools of P 2, 2 at once", "zigzag_swap",
                           "max/mean", "inter-node", "balanced"}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST(PlanCommandTest, JsonToAFileLeavesTheTextOnStandardOutput) {
  const TempDir folder;
  const std::string file = folder.path() + "/plan.json";
  const Result result = libra("plan --steps 1 " + small_job(), {"--json", file});
  EXPECT_THAT(result.out, HasSubstr("max/mean"));
  EXPECT_EQ(nlohmann::json::parse(read_file(file))["steps"], 1);
}

TEST(PlanCommandTest, SavedPlansShowAndValidateInBothForms) {
  const TempDir folder;
  std::vector<nlohmann::json> shown;
  for (const char* name : {"/pool.plan", "/pool.json"}) {
    const std::string file = folder.path() + name;
    const Result saved =
        libra("plan --steps 1 --placer none,paper " + small_job(), {"--save", file});
    EXPECT_THAT(saved.out, HasSubstr("pool 0 of window 0, placer paper"));
    EXPECT_EQ(libra("validate", {file}).out, "valid\n");
    EXPECT_EQ(json_of("validate", {file})["valid"], true);
    const Result text = libra("show", {file});
    EXPECT_EQ(text.code, 0);
    EXPECT_THAT(text.out, HasSubstr("placement  paper, fetch whole"));
    EXPECT_THAT(text.out, HasSubstr("fingerprint"));
    shown.push_back(json_of("show", {file}));
  }
  EXPECT_EQ(shown[0], shown[1]);
  EXPECT_EQ(shown[0]["sequences"].size(), 2U);
  EXPECT_EQ(shown[0]["derived"]["workers"], 4);
}

TEST(PlanCommandTest, DamagedPlansAreRefused) {
  const TempDir folder;
  const std::string file = folder.path() + "/pool.plan";
  ASSERT_EQ(libra("plan --steps 1 " + small_job(), {"--save", file}).code, 0);
  std::string bytes = read_file(file);
  expect_refused(libra("show", {folder.write("cut", bytes.substr(0, bytes.size() / 2))}), "cut: ");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  expect_refused(libra("validate", {folder.write("flipped", bytes)}), "flipped: ");
}

}  // namespace
}  // namespace libra::cli
