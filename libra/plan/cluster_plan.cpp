#include "libra/plan/cluster_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
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

  double nvlink() const { return std::max(nvlink_out, nvlink_in); }
  double network() const { return std::max(network_out, network_in); }
  double busiest() const { return std::max(nvlink(), network()); }
};

// All workers' ports, as rows move.
class Ports {
 public:
  Ports(const PoolPlan& plan, const Cluster& cluster)
      : cluster_(&cluster), ports_(at(plan.workers())) {}

  /// `out` bytes a row along the moves, `back` against them.
  void add(const std::vector<RowMove>& moves, std::int64_t out, std::int64_t back) {
    for (const RowMove& move : moves) {
      if (out > 0) add(move.from, move.to, static_cast<double>(move.rows * out));
      if (back > 0) add(move.to, move.from, static_cast<double>(move.rows * back));
    }
  }

  const PortSeconds& of(std::int32_t worker) const { return ports_[at(worker)]; }

 private:
  void add(std::int32_t from, std::int32_t to, double bytes) {
    constexpr double kNano = 1e-9;
    PortSeconds& sender = ports_[at(from)];
    PortSeconds& receiver = ports_[at(to)];
    if (cluster_->node_of(from) == cluster_->node_of(to)) {
      const double seconds = bytes * kNano / cluster_->nvlink_gb_per_s;
      sender.nvlink_out += seconds;
      receiver.nvlink_in += seconds;
    } else {
      const double seconds = bytes * kNano / cluster_->inter_node_gb_per_s;
      sender.network_out += seconds;
      receiver.network_in += seconds;
    }
  }

  const Cluster* cluster_;
  std::vector<PortSeconds> ports_;
};

// One pass of one worker: chunks hide what is exchanged, but for what the first one waits for and
// what the last one leaves. Of queries and results that is one chunk's; of keys a KV head's, if
// there are fewer of these than chunks.
class PassPrediction {
 public:
  PassPrediction(const PoolPlan& plan, const Cluster& cluster, const RowTraffic& row)
      : cluster_(cluster),
        chunks_(plan.options.chunks),
        key_chunks_(std::min<double>(chunks_, std::max(1, plan.heads().kv_shard_heads))),
        relays_(has_relays(plan.exchange)),
        keys_(plan, cluster),
        all_(plan, cluster) {
    keys_.add(plan.exchange.kv_moves, row.kv_out, row.kv_back);
    all_ = keys_;
    all_.add(plan.exchange.q_moves, row.q_out, row.q_back);
    relayed_.resize(at(cluster.node_of(plan.workers() - 1) + 1), 0);
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      double& most = relayed_[at(cluster.node_of(worker))];
      most = std::max(most, keys_.of(worker).network());
    }
  }

  double seconds(std::int32_t worker, double compute) const {
    const double all = all_.of(worker).busiest();
    if (all == 0) return compute;
    const double keys = std::min(all, keys_.of(worker).busiest());
    const double exposed = (all - keys) / chunks_ + keys_in_turn(worker, keys) / key_chunks_;
    const double hidden = std::max(0.0, all - exposed);
    return std::max(compute + cluster_.overlap_loss * std::min(compute, hidden), hidden) + exposed +
           latency(worker);
  }

 private:
  // Keys that a relay passes on come when it has them: the network first, then NVLink.
  double keys_in_turn(std::int32_t worker, double at_once) const {
    if (!relays_) return at_once;
    return std::max(at_once, relayed_[at(cluster_.node_of(worker))] + keys_.of(worker).nvlink());
  }

  // A phase for each chunk, the last return, and a relay's round that nothing hides.
  double latency(std::int32_t worker) const {
    const PortSeconds& ports = all_.of(worker);
    const bool network = ports.network_in + ports.network_out > 0;
    const double phase_us = network ? cluster_.inter_node_latency_us : cluster_.nvlink_latency_us;
    return 1e-6 * ((chunks_ + 1) * phase_us + (relays_ ? cluster_.nvlink_latency_us : 0));
  }

  const Cluster& cluster_;
  double chunks_;
  double key_chunks_;
  bool relays_;
  Ports keys_;
  Ports all_;
  std::vector<double> relayed_;  // by node: until its relays have keys from elsewhere
};

constexpr std::int64_t kLeastLooserTau = 10'000;                           // 1%
constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();  // no tile is cut

bool spans_nodes(const PlanOptions& options, const std::vector<PackedSequence>& sequences) {
  return std::ssize(sequences) * std::int64_t{options.cp} > options.gpus_per_node;
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

// The same tiles with another tau.
PoolPlan with_tau(const PoolPlan& plan, std::int32_t tau_ppm) {
  PoolPlan looser = plan;
  looser.options.tau_ppm = tau_ppm;
  looser.placement = place_tiles(looser.options, looser.layout, looser.tiling);
  looser.exchange = plan_exchange(looser.options, looser.layout, looser.tiling, looser.placement);
  return looser;
}

// By worker, picoseconds of additions.
std::vector<std::int64_t> addition_times(const PoolPlan& plan, const ComputeCost& cost) {
  std::vector<std::int64_t> times = addition_bytes(plan);
  std::transform(times.begin(), times.end(), times.begin(), cost.additions);
  return times;
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
  Fastest(const Cluster& cluster, const ComputeCost& cost, PoolPlan plan)
      : cluster_(cluster),
        cost_(cost),
        plan_(std::move(plan)),
        seconds_(predicted_seconds(plan_, cluster, cost)) {}

  const PoolPlan& plan() const { return plan_; }
  PoolPlan take() { return std::move(plan_); }

  // Whether its exchange costs enough to look for another.
  bool waits_for_links() const {
    constexpr double kWorthIt = 1.02;
    const std::vector<std::int64_t> additions = addition_times(plan_, cost_);
    const std::int64_t compute =
        plan_.placement.heaviest() + *std::max_element(additions.begin(), additions.end());
    return seconds_ > static_cast<double>(compute) * 1e-12 / cluster_.device_speed * kWorthIt;
  }

  // Whether it is the one now. Among equals the later one: it moves less.
  bool offer(PoolPlan plan) {
    const double seconds = predicted_seconds(plan, cluster_, cost_);
    if (seconds > seconds_) return false;
    seconds_ = seconds;
    plan_ = std::move(plan);
    return true;
  }

 private:
  const Cluster& cluster_;
  const ComputeCost& cost_;
  PoolPlan plan_;
  double seconds_;
};

// Whether a worker has more to do than tau allows, all its work counted.
bool breaks_tau(const PoolPlan& plan, const std::vector<std::int64_t>& other_work) {
  double heaviest = 0;
  double total = 0;
  for (std::size_t worker = 0; worker < other_work.size(); ++worker) {
    const auto load = static_cast<double>(plan.placement.load[worker] + other_work[worker]);
    heaviest = std::max(heaviest, load);
    total += load;
  }
  return heaviest * plan.workers() > total * (1 + 1e-6 * plan.options.tau_ppm);
}

// Homes of long samples add up what each guest computed, and should compute less themselves. How
// much it is hangs on the placement, so it is planned again with what it was, twice.
// `max_tile_pairs`: as wished.
void offer_with_additions(Fastest& fastest, const ComputeCost& cost, std::int64_t max_tile_pairs) {
  constexpr int kRounds = 2;
  for (int round = 0; round < kRounds; ++round) {
    const PoolPlan& plan = fastest.plan();
    std::vector<std::int64_t> times = addition_times(plan, cost);
    if (!breaks_tau(plan, times)) return;
    // More than the mean leaves no room for tiles, and sums stay within 64 bits.
    const std::vector<std::int64_t>& load = plan.placement.load;
    const std::int64_t mean =
        std::accumulate(load.begin(), load.end(), std::int64_t{0}) / std::ssize(load);
    for (std::int64_t& time : times) time = std::min(time, mean);
    PlanOptions options = plan.options;
    if (options.max_tile_pairs != kWhole) options.max_tile_pairs = max_tile_pairs;
    if (!fastest.offer(make_plan(options, plan.sequences, cost.piece, times))) return;
  }
}

}  // namespace

double predicted_seconds(const PoolPlan& plan, const Cluster& cluster, const ComputeCost& cost) {
  constexpr double kPico = 1e-12;
  constexpr double kForwardShare = 1 / 3.5;  // by FLOPs
  const PassPrediction forward(plan, cluster, forward_row_traffic(plan));
  const PassPrediction backward(plan, cluster, backward_row_traffic(plan, plan.options.backward));
  const std::vector<std::int64_t> additions = addition_times(plan, cost);
  const double per_ps = kPico / cluster.device_speed;
  double slowest = 0;
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    const double compute = static_cast<double>(plan.placement.load[at(worker)]) * per_ps;
    slowest = std::max(slowest, forward.seconds(worker, compute * kForwardShare) +
                                    backward.seconds(worker, compute * (1 - kForwardShare)) +
                                    static_cast<double>(additions[at(worker)]) * per_ps);
  }
  return slowest;
}

PoolPlan make_plan_for(const Cluster& cluster, const PlanOptions& options,
                       const std::vector<PackedSequence>& sequences, const ComputeCost& cost) {
  PlanOptions wished = options;
  wished.gpus_per_node = cluster.gpus_per_node;
  if (!looks_at_links(options.placer)) return make_plan(wished, sequences, cost.piece);
  wished.node_fetch = options.node_fetch || spans_nodes(wished, sequences);
  Fastest fastest(cluster, cost, make_plan(wished, sequences, cost.piece));
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
    whole.max_tile_pairs = kWhole;
    fastest.offer(make_plan(whole, sequences, cost.piece));
  };
  offer_whole();
  for (auto halves = finer(wished); halves && fastest.waits_for_links(); halves = finer(*halves)) {
    if (!fastest.offer(make_plan(*halves, sequences, cost.piece))) break;
    wished = *halves;
    offer_whole();
  }
  for (std::int64_t tau = wished.tau_ppm; tau < kMaxTauPpm && fastest.waits_for_links();) {
    tau = std::clamp<std::int64_t>(tau * 4, kLeastLooserTau, kMaxTauPpm);
    if (!fastest.offer(with_tau(fastest.plan(), static_cast<std::int32_t>(tau)))) break;
  }
  offer_with_additions(fastest, cost, options.max_tile_pairs);
  offer_direct(home);
  fastest.offer(std::move(home));
  offer_direct(PoolPlan(fastest.plan()));
  return fastest.take();
}

}  // namespace libra
