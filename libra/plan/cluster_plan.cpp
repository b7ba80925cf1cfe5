#include "libra/plan/cluster_plan.h"

#include <algorithm>
#include <utility>

#include "libra/base/index.h"
#include "libra/plan/traffic.h"

namespace libra {
namespace {

/// Seconds for which a worker's ports are busy: out of and into NVLink, out of and into the
/// network.
struct PortSeconds {
  double nvlink_out = 0;
  double nvlink_in = 0;
  double network_out = 0;
  double network_in = 0;

  // Two passes, a latency for each of their M + 1 phases that wait for something, and for the round
  // of a relay that nothing hides.
  double busiest(const Cluster& cluster, std::int32_t chunks, bool relays) const {
    const double nvlink = std::max(nvlink_out, nvlink_in);
    const double network = std::max(network_out, network_in);
    if (nvlink + network == 0) return 0;
    const double latency_us =
        network > 0 ? cluster.inter_node_latency_us : cluster.nvlink_latency_us;
    return std::max(nvlink, network) + 2e-6 * (chunks + 1) * latency_us +
           (relays ? 2e-6 * cluster.nvlink_latency_us : 0);
  }
};

void add_flows(std::vector<PortSeconds>& ports, const TrafficReport& traffic,
               const Cluster& cluster) {
  constexpr double kGiga = 1e9;
  for (const Flow& flow : traffic.flows) {
    const auto bytes = static_cast<double>(flow.bytes) / kGiga;
    PortSeconds& from = ports[at(flow.from)];
    PortSeconds& to = ports[at(flow.to)];
    if (cluster.node_of(flow.from) == cluster.node_of(flow.to)) {
      from.nvlink_out += bytes / cluster.nvlink_gb_per_s;
      to.nvlink_in += bytes / cluster.nvlink_gb_per_s;
    } else {
      from.network_out += bytes / cluster.inter_node_gb_per_s;
      to.network_in += bytes / cluster.inter_node_gb_per_s;
    }
  }
}

// The baselines stay as they are.
bool knows_nodes(const PlanOptions& options, const std::vector<PackedSequence>& sequences) {
  const std::int64_t workers = std::ssize(sequences) * std::int64_t{options.cp};
  return workers > options.gpus_per_node &&
         (options.placer == PlacerKind::kReserve || options.placer == PlacerKind::kBalanced);
}

PoolPlan at_home(const PoolPlan& plan) {
  PoolPlan home = plan;
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    home.placement.destination[at(tile)] = plan.tiling.home_of(tile);
  }
  home.placement = with_destinations(plan.options, plan.layout, plan.tiling,
                                     std::move(home.placement.destination));
  home.exchange = plan_exchange(plan.options, plan.layout, plan.tiling, home.placement);
  return home;
}

PoolPlan without_relays(const PoolPlan& plan) {
  PoolPlan direct = plan;
  direct.options.node_fetch = false;
  direct.exchange = plan_exchange(direct.options, plan.layout, plan.tiling, plan.placement);
  return direct;
}

}  // namespace

double predicted_seconds(const PoolPlan& plan, const Cluster& cluster) {
  constexpr double kPico = 1e-12;
  std::vector<PortSeconds> ports(at(plan.workers()));
  add_flows(ports, forward_traffic(plan), cluster);
  add_flows(ports, backward_traffic(plan), cluster);
  const bool relays = has_relays(plan.exchange);
  double slowest = 0;
  for (std::size_t worker = 0; worker < ports.size(); ++worker) {
    const double compute =
        static_cast<double>(plan.placement.load[worker]) * kPico / cluster.device_speed;
    const double exchange = ports[worker].busiest(cluster, plan.options.chunks, relays);
    const double together =
        std::max(compute + cluster.overlap_loss * std::min(compute, exchange), exchange);
    slowest = std::max(slowest, together + exchange / plan.options.chunks);
  }
  return slowest;
}

PoolPlan make_plan_for(const Cluster& cluster, const PlanOptions& options,
                       const std::vector<PackedSequence>& sequences, const PieceCost& picoseconds) {
  PlanOptions candidate = options;
  candidate.gpus_per_node = cluster.gpus_per_node;
  candidate.node_fetch = options.node_fetch || knows_nodes(candidate, sequences);
  PoolPlan best = make_plan(candidate, sequences, picoseconds);
  double least = predicted_seconds(best, cluster);
  // Among equals the later one: it moves less.
  const auto keep_faster = [&](PoolPlan plan) {
    const double seconds = predicted_seconds(plan, cluster);
    if (seconds > least) return false;
    least = seconds;
    best = std::move(plan);
    return true;
  };
  const auto keep_faster_without_relays = [&](const PoolPlan& plan) {
    if (!options.node_fetch && has_relays(plan.exchange)) keep_faster(without_relays(plan));
  };
  if (best.tiles_moved() > 0) {
    PoolPlan home = at_home(best);
    for (const std::int32_t factor : {4, 16, 64}) {
      candidate.tau_ppm = static_cast<std::int32_t>(
          std::min<std::int64_t>(std::int64_t{options.tau_ppm} * factor, kMaxTauPpm));
      if (!keep_faster(make_plan(candidate, sequences, picoseconds))) break;
    }
    keep_faster_without_relays(home);
    keep_faster(std::move(home));
  }
  keep_faster_without_relays(PoolPlan(best));
  return best;
}

}  // namespace libra
