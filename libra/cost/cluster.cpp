#include "libra/cost/cluster.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>

#include "libra/base/error.h"
#include "libra/cost/json_fields.h"

namespace libra {
namespace {

// GB/s, us, TFLOP/s, GB: anything beyond is a mistake of units, and times would grow beyond reason.
constexpr double kMost = 1e6;
constexpr double kLeast = 1e-6;
constexpr std::int32_t kMostGpusPerNode = 1024;

void check_text(std::string_view field, const std::string& value) {
  if (value.empty()) throw ConfigError(fmt::format("{} is empty: must be a name", field));
}

// Written so that NaN fails.
void check_positive(std::string_view field, double value) {
  if (value >= kLeast && value <= kMost) return;
  throw ConfigError(fmt::format("{} is {}: must be in [{}, {}]", field, value, kLeast, kMost));
}

void check_latency(std::string_view field, double value) {
  if (value >= 0 && value <= kMost) return;
  throw ConfigError(fmt::format("{} is {}: must be in [0, {}]", field, value, kMost));
}

void check_share(std::string_view field, double value, double most) {
  if (value >= 0 && value <= most) return;
  throw ConfigError(fmt::format("{} is {}: must be in [0, {}]", field, value, most));
}

// The simulator's fields; all may be left out.
void parse_simulation(const JsonObject& file, Cluster& cluster) {
  cluster.device_speed = file.number_or("device_speed", cluster.device_speed);
  cluster.linear_tflops = file.number_or("linear_tflops", cluster.linear_tflops);
  cluster.memory_gb = file.number_or("memory_gb", cluster.memory_gb);
  cluster.overlap_loss = file.number_or("overlap_loss", cluster.overlap_loss);
  cluster.gpu_variation = file.number_or("gpu_variation", cluster.gpu_variation);
  cluster.step_variation = file.number_or("step_variation", cluster.step_variation);
}

Cluster parse_cluster(const std::string& text, const std::string& where) {
  const JsonObject file = parse_json_object(text, where);
  file.allow_only({"name", "gpus_per_node", "nvlink_gb_per_s", "inter_node_gb_per_s",
                   "nvlink_latency_us", "inter_node_latency_us", "device_profile", "device_speed",
                   "linear_tflops", "memory_gb", "overlap_loss", "gpu_variation",
                   "step_variation"});
  Cluster cluster;
  cluster.name = file.text("name");
  cluster.gpus_per_node = file.integer32("gpus_per_node");
  cluster.nvlink_gb_per_s = file.number("nvlink_gb_per_s");
  cluster.inter_node_gb_per_s = file.number("inter_node_gb_per_s");
  cluster.nvlink_latency_us = file.number("nvlink_latency_us");
  cluster.inter_node_latency_us = file.number("inter_node_latency_us");
  cluster.device_profile = file.text("device_profile");
  parse_simulation(file, cluster);
  try {
    validate(cluster);
  } catch (const ConfigError& error) {
    throw InputError(where, error.what());
  }
  return cluster;
}

}  // namespace

void validate(const Cluster& cluster) {
  check_text("name", cluster.name);
  if (cluster.gpus_per_node < 1 || cluster.gpus_per_node > kMostGpusPerNode) {
    throw ConfigError(fmt::format("gpus_per_node is {}: must be in [1, {}]", cluster.gpus_per_node,
                                  kMostGpusPerNode));
  }
  check_positive("nvlink_gb_per_s", cluster.nvlink_gb_per_s);
  check_positive("inter_node_gb_per_s", cluster.inter_node_gb_per_s);
  check_latency("nvlink_latency_us", cluster.nvlink_latency_us);
  check_latency("inter_node_latency_us", cluster.inter_node_latency_us);
  check_text("device_profile", cluster.device_profile);
  check_positive("device_speed", cluster.device_speed);
  check_positive("linear_tflops", cluster.linear_tflops);
  check_positive("memory_gb", cluster.memory_gb);
  check_share("overlap_loss", cluster.overlap_loss, 1);
  check_share("gpu_variation", cluster.gpu_variation, 0.2);
  check_share("step_variation", cluster.step_variation, 0.2);
}

const std::vector<Cluster>& known_clusters() {
  // What was measured and what is assumed: docs/cluster_format.md.
  constexpr double kStepVariation = 0.013;
  static const std::vector<Cluster> clusters = {
      {"hgx-h200", 8, 400, 50, 5, 10, "h200", 1, 600, 141, 0.13, 0, kStepVariation},
      {"hgx-h100", 8, 400, 50, 5, 10, "h200", 1, 600, 80, 0.13, 0, kStepVariation},
      {"nvl72-gb200", 72, 780, 50, 5, 10, "h200", 2.25, 1350, 186, 0.13, 0, kStepVariation},
      {"supernode-64", 64, 400, 50, 5, 10, "h200", 1, 600, 141, 0.13, 0, kStepVariation}};
  return clusters;
}

Cluster as_seen_by(Cluster cluster, const std::vector<std::int32_t>& gpus) {
  std::int32_t workers = 0, run = 0;
  for (std::size_t w = 0; w < gpus.size(); ++w) {
    ++run;
    const bool ends =
        w + 1 == gpus.size() || cluster.node_of(gpus[w + 1]) != cluster.node_of(gpus[w]);
    if (ends) workers = std::gcd(workers, std::exchange(run, 0));
  }
  cluster.gpus_per_node = workers;
  return cluster;
}

Cluster load_cluster(const std::string& preset_or_path) {
  std::string names;
  for (const Cluster& cluster : known_clusters()) {
    if (cluster.name == preset_or_path) return cluster;
    names += cluster.name + ", ";
  }
  std::error_code ignored;
  if (!std::filesystem::exists(preset_or_path, ignored)) {
    throw InputError(preset_or_path,
                     fmt::format("no such cluster: use {}or the path of a JSON file", names));
  }
  return parse_cluster(read_json_file(preset_or_path), preset_or_path);
}

std::string format_cluster(const Cluster& cluster) {
  validate(cluster);
  nlohmann::ordered_json object;
  object["name"] = cluster.name;
  object["gpus_per_node"] = cluster.gpus_per_node;
  object["nvlink_gb_per_s"] = cluster.nvlink_gb_per_s;
  object["inter_node_gb_per_s"] = cluster.inter_node_gb_per_s;
  object["nvlink_latency_us"] = cluster.nvlink_latency_us;
  object["inter_node_latency_us"] = cluster.inter_node_latency_us;
  object["device_profile"] = cluster.device_profile;
  object["device_speed"] = cluster.device_speed;
  object["linear_tflops"] = cluster.linear_tflops;
  object["memory_gb"] = cluster.memory_gb;
  object["overlap_loss"] = cluster.overlap_loss;
  object["gpu_variation"] = cluster.gpu_variation;
  object["step_variation"] = cluster.step_variation;
  return object.dump(2) + "\n";
}

}  // namespace libra
