// The machines that a plan is made for: how many GPUs share a node, and how fast bytes move inside
// it and between nodes.
//
//   const Cluster cluster = load_cluster("hgx-h200");
//   cluster.node_of(9);  // 1
//
// The second half of the fields is for the simulator (libra/sim): plans do not depend on it.
//
// Two levels only, every GPU with links of its own: no rails, no oversubscribed switches.
// Bandwidths are what transfers reach, not what the links are sold as. docs/cluster_format.md has
// the JSON form, and where the presets' figures come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace libra {

struct Cluster {
  std::string name;
  std::int32_t gpus_per_node = 8;
  double nvlink_gb_per_s = 0;        ///< 1e9 bytes per second, per GPU and direction
  double inter_node_gb_per_s = 0;    ///< likewise
  double nvlink_latency_us = 0;      ///< of one message: copy, signal and wait
  double inter_node_latency_us = 0;  ///< likewise
  std::string device_profile;        ///< what load_device_profile takes

  double device_speed = 1;     ///< how many times as fast as its profile attention runs here
  double linear_tflops = 600;  ///< what linear layers reach on one GPU, 1e12 FLOP/s
  double memory_gb = 141;      ///< of one GPU, 1e9 bytes
  double overlap_loss = 0.13;  ///< what a second of traffic costs the computation over it, seconds
  double gpu_variation = 0;    ///< standard deviation of a GPU's speed over the mean GPU's
  double step_variation = 0;   ///< likewise, from step to step

  /// GPUs are numbered node by node. Requires global_gpu >= 0.
  std::int32_t node_of(std::int32_t global_gpu) const { return global_gpu / gpus_per_node; }

  friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// Throws ConfigError that names the field and what it may be. Does not load the device profile.
void validate(const Cluster& cluster);

/// The cluster as a pool sees it whose worker w is GPU `gpus[w]`: a node has as many consecutive
/// workers as are sure to share one, the greatest common divisor of the runs that do. With tensor
/// parallelism inside nodes of 8, say, a pool's workers may be on a node each. Requires at least
/// one GPU, none negative.
Cluster as_seen_by(Cluster cluster, const std::vector<std::int32_t>& gpus);

/// hgx-h200, and hgx-h100, nvl72-gb200 and supernode-64, which have no measurements of their own
/// and borrow the H200's.
const std::vector<Cluster>& known_clusters();

/// The preset of this name, else the valid cluster in this JSON file. Throws InputError with the
/// path and the field; it lists the presets if there is no such file.
Cluster load_cluster(const std::string& preset_or_path);

/// The JSON text that load_cluster reads back to an equal cluster. Throws what validate() throws.
std::string format_cluster(const Cluster& cluster);

}  // namespace libra
