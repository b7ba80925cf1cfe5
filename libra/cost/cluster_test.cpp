#include "libra/cost/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "libra/base/error.h"
#include "libra/cost/device_profile.h"
#include "libra/cost/temp_file.h"

namespace libra {
namespace {

using testing::HasSubstr;

const Cluster kSmall = {"lab", 2, 123.5, 12.25, 0, 7.5, "h200"};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) ADD_FAILURE() << from << " is not in the text";
  return text.replace(at, from.size(), to);
}

std::string complaint_about_file(const std::string& text) {
  const TempFile file(text);
  try {
    load_cluster(file.path());
  } catch (const InputError& error) {
    EXPECT_EQ(error.where(), file.path());
    return error.what();
  }
  return "";
}

TEST(LoadCluster, KnowsThePresets) {
  EXPECT_EQ(load_cluster("hgx-h200"),
            (Cluster{"hgx-h200", 8, 400, 50, 5, 10, "h200", 1, 600, 141, 0.13, 0, 0.013}));
  EXPECT_EQ(load_cluster("hgx-h100").memory_gb, 80);
  EXPECT_EQ(load_cluster("nvl72-gb200").gpus_per_node, 72);
  EXPECT_EQ(load_cluster("supernode-64").gpus_per_node, 64);
}

TEST(LoadCluster, TakesDefaultsForWhatOnlyTheSimulatorNeeds) {
  const TempFile file(R"({"name": "lab", "gpus_per_node": 2, "nvlink_gb_per_s": 123.5,
    "inter_node_gb_per_s": 12.25, "nvlink_latency_us": 0, "inter_node_latency_us": 7.5,
    "device_profile": "h200"})");
  EXPECT_EQ(load_cluster(file.path()), kSmall);
}

TEST(LoadCluster, ReadsWhatOnlyTheSimulatorNeeds) {
  Cluster cluster = kSmall;
  cluster.device_speed = 2;
  cluster.linear_tflops = 700;
  cluster.memory_gb = 96;
  cluster.overlap_loss = 0.5;
  cluster.gpu_variation = 0.01;
  cluster.step_variation = 0.02;
  const TempFile file(format_cluster(cluster));
  EXPECT_EQ(load_cluster(file.path()), cluster);
}

TEST(KnownClusters, AreValidAndNameDeviceProfilesThatExist) {
  for (const Cluster& cluster : known_clusters()) {
    EXPECT_NO_THROW(validate(cluster)) << cluster.name;
    EXPECT_NO_THROW(find_device_profile(cluster.device_profile)) << cluster.name;
  }
}

TEST(Cluster, NumbersGpusNodeByNode) {
  EXPECT_EQ(kSmall.node_of(0), 0);
  EXPECT_EQ(kSmall.node_of(1), 0);
  EXPECT_EQ(kSmall.node_of(2), 1);
  EXPECT_EQ(load_cluster("hgx-h200").node_of(127), 15);
}

TEST(Cluster, IsSeenByTheWorkersThatShareItsNodes) {
  const Cluster cluster = load_cluster("hgx-h200");
  const auto consecutive = [&](const std::vector<std::int32_t>& gpus) {
    return as_seen_by(cluster, gpus).gpus_per_node;
  };
  EXPECT_EQ(consecutive({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), 8);
  EXPECT_EQ(consecutive({8, 9, 10, 11}), 4);
  EXPECT_EQ(consecutive({0, 8, 16, 24}), 1) << "TP 8";
  EXPECT_EQ(consecutive({1, 5, 9, 13, 17, 21, 25, 29}), 2) << "TP 4";
  EXPECT_EQ(consecutive({4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), 4) << "from a node's middle";
  EXPECT_EQ(consecutive({6, 7, 8, 9, 10}), 1);
  EXPECT_EQ(consecutive({70}), 1);
  Cluster expected = cluster;
  expected.gpus_per_node = 4;
  EXPECT_EQ(as_seen_by(cluster, {8, 9, 10, 11}), expected) << "nothing else changes";
}

TEST(LoadCluster, ReadsBackWhatFormatClusterWrote) {
  const TempFile file(format_cluster(kSmall));
  EXPECT_EQ(load_cluster(file.path()), kSmall);
}

TEST(LoadCluster, ListsThePresetsWhenThereIsNoSuchFile) {
  try {
    load_cluster("hgx-b300");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "hgx-b300: no such cluster: use hgx-h200, hgx-h100, nvl72-gb200, "
                 "supernode-64, or the path of a JSON file");
  }
}

TEST(LoadCluster, NamesTheFieldThatIsWrong) {
  const struct {
    const char* from;
    const char* to;
    const char* complaint;
  } cases[] = {
      {R"(  "gpus_per_node": 2,)", "", "field 'gpus_per_node' is missing"},
      {R"("gpus_per_node": 2)", R"("gpus_per_node": 2.5)", "'gpus_per_node' must be a whole"},
      {R"("gpus_per_node": 2)", R"("gpus_per_node": 0)", "gpus_per_node is 0: must be in [1,"},
      {R"("gpus_per_node": 2)", R"("gpus_per_node": 4294967298)", "'gpus_per_node' is too large"},
      {R"("gpus_per_node": 2)", R"("gpus_per_node": 18446744073709551615)", "must be a whole"},
      {"123.5", "-123.5", "nvlink_gb_per_s is -123.5: must be in [1e-06,"},
      {"12.25", "0", "inter_node_gb_per_s is 0: must be in [1e-06,"},
      {"7.5", "-7.5", "inter_node_latency_us is -7.5: must be in [0,"},
      {"7.5", "null", "field 'inter_node_latency_us' must be a number"},
      {"7.5", "\"fast\"", "field 'inter_node_latency_us' must be a number"},
      {"\"lab\"", "7", "field 'name' must be a text"},
      {"\"lab\"", "\"\"", "name is empty"},
      {"\"nvlink_latency_us\"", "\"nvlink_latency\"", "field 'nvlink_latency' is not known: use"},
      {"\"linear_tflops\": 600", "\"linear_tflops\": 0", "linear_tflops is 0: must be in [1e-06,"},
      {"\"overlap_loss\": 0.13", "\"overlap_loss\": 1.5", "overlap_loss is 1.5: must be in [0, 1]"},
      {"7.5", "NaN", "is not JSON: byte"},
      {"7.5", "1e999", "too large"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.to);
    EXPECT_THAT(complaint_about_file(replaced(format_cluster(kSmall), c.from, c.to)),
                HasSubstr(c.complaint));
  }
}

TEST(LoadCluster, RefusesWhatIsNoJsonObject) {
  EXPECT_THAT(complaint_about_file("gpus: 8"), HasSubstr("is not JSON: byte 1"));
  EXPECT_THAT(complaint_about_file("[1, 2]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(complaint_about_file(""), HasSubstr("is empty"));
  EXPECT_THROW(load_cluster(testing::TempDir()), InputError);
  EXPECT_THROW(load_cluster("/dev/zero"), InputError) << "which has no end";
}

TEST(ValidateCluster, RefusesRatesAndSizesThatNoMachineHas) {
  for (double Cluster::*field :
       {&Cluster::nvlink_gb_per_s, &Cluster::inter_node_gb_per_s, &Cluster::device_speed,
        &Cluster::linear_tflops, &Cluster::memory_gb}) {
    Cluster cluster = kSmall;
    for (const double good : {1e-6, 1e6}) {
      cluster.*field = good;
      EXPECT_NO_THROW(validate(cluster)) << good;
    }
    for (const double bad : {1e-300, 9e-7, 1.1e6}) {
      cluster.*field = bad;
      EXPECT_THROW(validate(cluster), ConfigError) << bad;
    }
  }
}

TEST(ValidateCluster, RefusesWhatIsNotFinite) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (double Cluster::*field : {&Cluster::nvlink_gb_per_s, &Cluster::inter_node_gb_per_s,
                                   &Cluster::nvlink_latency_us, &Cluster::inter_node_latency_us}) {
      Cluster cluster = kSmall;
      cluster.*field = bad;
      EXPECT_THROW(validate(cluster), ConfigError);
      EXPECT_THROW(format_cluster(cluster), ConfigError);
    }
  }
}

}  // namespace
}  // namespace libra
