#include "libra/plan/cluster_plan.h"

#include <algorithm>
#include <limits>
#include <optional>
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

  double busiest() const {
    return std::max(std::max(nvlink_out, nvlink_in), std::max(network_out, network_in));
  }
};

std::vector<PortSeconds> port_seconds(const TrafficReport& traffic, const Cluster& cluster) {
  constexpr double kGiga = 1e9;
  std::vector<PortSeconds> ports(at(traffic.workers));
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
  return ports;
}

// One pass of one worker: chunks hide what is exchanged, but for what the first one waits for and
// what the last one leaves. Of queries and results that is one chunk's; of keys a KV head's, if
// there are fewer of these than chunks.
class PassPrediction {
 public:
  PassPrediction(const PoolPlan& plan, const Cluster& cluster, const TrafficReport& all,
                 const TrafficReport& keys)
      : cluster_(cluster),
        chunks_(plan.options.chunks),
        key_chunks_(std::min<double>(chunks_, std::max(1, plan.heads().kv_shard_heads))),
        relays_(has_relays(plan.exchange)),
        all_(port_seconds(all, cluster)),
        keys_(port_seconds(keys, cluster)) {}

  double seconds(std::int32_t worker, double compute) const {
    const double all = all_[at(worker)].busiest();
    if (all == 0) return compute;
    const double keys = std::min(all, keys_[at(worker)].busiest());
    const double exposed = (all - keys) / chunks_ + keys / key_chunks_;
    const double hidden = all - exposed;
    return std::max(compute + cluster_.overlap_loss * std::min(compute, hidden), hidden) + exposed +
           latency(worker);
  }

 private:
  // A phase for each chunk, the last return, and a relay's round that nothing hides.
  double latency(std::int32_t worker) const {
    const PortSeconds& ports = all_[at(worker)];
    const bool network = ports.network_in + ports.network_out > 0;
    const double phase_us = network ? cluster_.inter_node_latency_us : cluster_.nvlink_latency_us;
    return 1e-6 * ((chunks_ + 1) * phase_us + (relays_ ? cluster_.nvlink_latency_us : 0));
  }

  const Cluster& cluster_;
  double chunks_;
  double key_chunks_;
  bool relays_;
  std::vector<PortSeconds> all_;
  std::vector<PortSeconds> keys_;
};

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

// With twice the head shards a worker that helps needs the keys of half the heads. Not beyond one
// KV head a shard: there it would need as many for half the work.
std::optional<PlanOptions> finer(const PlanOptions& options) {
  PlanOptions halves = options;
  halves.head_shards *= 2;
  if (halves.head_shards > options.shape.kv_heads || !legal_heads(halves)) return std::nullopt;
  return halves;
}

// The plan of the least predicted time so far.
class Fastest {
 public:
  Fastest(const Cluster& cluster, PoolPlan plan)
      : cluster_(cluster), plan_(std::move(plan)), seconds_(predicted_seconds(plan_, cluster)) {}

  const PoolPlan& plan() const { return plan_; }
  PoolPlan take() { return std::move(plan_); }

  // Whether its exchange costs enough to look for another.
  bool waits_for_links() const {
    constexpr double kWorthIt = 1.02;
    const double compute =
        static_cast<double>(plan_.placement.heaviest()) * 1e-12 / cluster_.device_speed;
    return seconds_ > compute * kWorthIt;
  }

  // Whether it is the one now. Among equals the later one: it moves less.
  bool offer(PoolPlan plan) {
    const double seconds = predicted_seconds(plan, cluster_);
    if (seconds > seconds_) return false;
    seconds_ = seconds;
    plan_ = std::move(plan);
    return true;
  }

 private:
  const Cluster& cluster_;
  PoolPlan plan_;
  double seconds_;
};

}  // namespace

double predicted_seconds(const PoolPlan& plan, const Cluster& cluster) {
  constexpr double kPico = 1e-12;
  constexpr double kForwardShare = 1 / 3.5;  // by FLOPs
  const PassPrediction forward(plan, cluster, forward_traffic(plan), forward_key_traffic(plan));
  const PassPrediction backward(plan, cluster, backward_traffic(plan), backward_key_traffic(plan));
  double slowest = 0;
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    const double compute =
        static_cast<double>(plan.placement.load[at(worker)]) * kPico / cluster.device_speed;
    slowest = std::max(slowest, forward.seconds(worker, compute * kForwardShare) +
                                    backward.seconds(worker, compute * (1 - kForwardShare)));
  }
  return slowest;
}

PoolPlan make_plan_for(const Cluster& cluster, const PlanOptions& options,
                       const std::vector<PackedSequence>& sequences, const PieceCost& picoseconds) {
  PlanOptions wished = options;
  wished.gpus_per_node = cluster.gpus_per_node;
  wished.node_fetch = options.node_fetch || knows_nodes(wished, sequences);
  Fastest fastest(cluster, make_plan(wished, sequences, picoseconds));
  const auto offer_direct = [&](const PoolPlan& plan) {
    if (!options.node_fetch && has_relays(plan.exchange)) fastest.offer(without_relays(plan));
  };
  if (fastest.plan().tiles_moved() == 0) {
    offer_direct(PoolPlan(fastest.plan()));
    return fastest.take();
  }
  PoolPlan home = at_home(fastest.plan());
  // Cutting large tiles lets more workers share a sample, and each needs nearly all its keys.
  const auto offer_whole = [&] {
    if (fastest.plan().options.max_tile_pairs == wished.max_tile_pairs) return;
    PlanOptions whole = wished;
    whole.max_tile_pairs = std::numeric_limits<std::int64_t>::max();
    fastest.offer(make_plan(whole, sequences, picoseconds));
  };
  offer_whole();
  for (auto halves = finer(wished); halves && fastest.waits_for_links(); halves = finer(*halves)) {
    if (!fastest.offer(make_plan(*halves, sequences, picoseconds))) break;
    wished = *halves;
    offer_whole();
  }
  wished = fastest.plan().options;
  for (std::int64_t tau = wished.tau_ppm; tau < kMaxTauPpm && fastest.waits_for_links();) {
    tau = std::min<std::int64_t>(tau * 4, kMaxTauPpm);
    wished.tau_ppm = static_cast<std::int32_t>(tau);
    if (!fastest.offer(make_plan(wished, sequences, picoseconds))) break;
  }
  offer_direct(home);
  fastest.offer(std::move(home));
  offer_direct(PoolPlan(fastest.plan()));
  return fastest.take();
}

}  // namespace libra
