#include "libra/sim/cp_times.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/sim/call_time.h"

namespace libra {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

std::int64_t cut(std::int64_t tokens, std::int64_t chunk, std::int64_t chunks) {
  return tokens * chunk / chunks;
}

std::int64_t sample_tokens(const PackedSequence& sequence) {
  return std::accumulate(sequence.sample_tokens.begin(), sequence.sample_tokens.end(),
                         std::int64_t{0});
}

/// Of keys and values, for all heads of one token.
double kv_bytes(const Scenario& scenario) {
  const AttentionShape& shape = scenario.plan.shape;
  return static_cast<double>(kv_token_bytes(shape, shape.kv_heads, scenario.plan.storage));
}
double dkv_bytes(const Scenario& scenario) {
  const AttentionShape& shape = scenario.plan.shape;
  return static_cast<double>(dkv_token_bytes(shape, shape.kv_heads, scenario.plan.storage));
}

// How the CP group lies on nodes.
struct GroupLinks {
  std::int32_t nodes = 1;
  std::int32_t gpus_a_node = 1;  // of the group

  GroupLinks(const Scenario& scenario, std::int64_t first_gpu) {
    const std::int64_t per_node = scenario.cluster.gpus_per_node;
    const std::int64_t last_gpu = first_gpu + scenario.plan.cp - 1;
    nodes = static_cast<std::int32_t>(last_gpu / per_node - first_gpu / per_node + 1);
    gpus_a_node = std::max(1, scenario.plan.cp / nodes);
  }
};

// Entries of one rank, in H calls of q_heads / H heads each.
class RankCalls {
 public:
  explicit RankCalls(const Environment& environment)
      : environment_(environment),
        shards_(environment.scenario().plan.head_shards),
        heads_(environment.scenario().plan.shape.q_heads / shards_) {}

  void add(TokenRange queries) { calls_.add(environment_.device(), queries, heads_); }

  /// An entry that takes `share` of the time of these queries.
  void add_scaled(TokenRange queries, double share) {
    CallPair one;
    one.add(environment_.device(), queries, heads_);
    for (CallTime* const call : {&one.forward, &one.backward}) {
      call->ps = static_cast<std::int64_t>(static_cast<double>(call->ps) * share);
    }
    calls_.add(one);
  }

  double forward() const { return seconds(calls_.forward); }
  double backward() const { return seconds(calls_.backward); }
  std::int64_t work() const { return calls_.work * shards_; }

 private:
  double seconds(const CallTime& call) const {
    const std::int64_t launch = environment_.device().data().launch_ps;
    return environment_.seconds(call.total_ps(launch)) * shards_;
  }

  const Environment& environment_;
  std::int32_t shards_;
  std::int32_t heads_;
  CallPair calls_;
};

// Chunks `rank` and 2 CP - 1 - rank of what lies at `begin` in a stretch of `whole` tokens.
void add_zigzag(RankCalls& calls, std::int32_t rank, std::int32_t cp, TokenRange stretch,
                std::int64_t whole) {
  const std::int64_t chunks = 2 * std::int64_t{cp};
  for (const std::int64_t chunk : {std::int64_t{rank}, chunks - 1 - rank}) {
    const TokenRange held = {cut(whole, chunk, chunks), cut(whole, chunk + 1, chunks)};
    const TokenRange mine = intersect(held, stretch);
    if (!mine.empty()) calls.add({mine.begin - stretch.begin, mine.end - stretch.begin});
  }
}

std::vector<RankCalls> per_document(const Environment& environment,
                                    const PackedSequence& sequence) {
  const std::int32_t cp = environment.scenario().plan.cp;
  std::vector<RankCalls> ranks(at(cp), RankCalls(environment));
  for (const std::int64_t tokens : sequence.sample_tokens) {
    for (std::int32_t rank = 0; rank < cp; ++rank) {
      add_zigzag(ranks[at(rank)], rank, cp, {0, tokens}, tokens);
    }
  }
  return ranks;
}

// Of the sequence's tokens without padding, as a variable-length packer would leave none.
std::vector<RankCalls> per_sequence(const Environment& environment,
                                    const PackedSequence& sequence) {
  const std::int32_t cp = environment.scenario().plan.cp;
  const std::int64_t whole = sample_tokens(sequence);
  std::vector<RankCalls> ranks(at(cp), RankCalls(environment));
  for (std::int32_t rank = 0; rank < cp; ++rank) {
    std::int64_t begin = 0;
    for (const std::int64_t tokens : sequence.sample_tokens) {
      add_zigzag(ranks[at(rank)], rank, cp, {begin, begin + tokens}, whole);
      begin += tokens;
    }
  }
  return ranks;
}

double slowest(const std::vector<RankCalls>& ranks) {
  double seconds = 0;
  for (const RankCalls& rank : ranks) {
    seconds = std::max(seconds, rank.forward() + rank.backward());
  }
  return seconds;
}

// A collective inside the group, `bytes` into every rank: inside a node by NVLink; what comes from
// other nodes comes once per node, through all its GPUs' network ports.
double collective_seconds(const Scenario& scenario, const GroupLinks& links, double bytes) {
  const Cluster& cluster = scenario.cluster;
  if (scenario.plan.cp == 1) return 0;
  const double nvlink =
      bytes / (cluster.nvlink_gb_per_s * kGiga) + cluster.nvlink_latency_us * kMicro;
  if (links.nodes == 1) return nvlink;
  const double network = bytes * (links.nodes - 1) / links.nodes / links.gpus_a_node /
                             (cluster.inter_node_gb_per_s * kGiga) +
                         cluster.inter_node_latency_us * kMicro;
  return std::max(nvlink, network);
}

LinkBytes collective_bytes(const Scenario& scenario, const GroupLinks& links, double bytes) {
  const double total = bytes * scenario.plan.cp;
  const double network = bytes * (links.nodes - 1);  // once into each node, from the others
  return {total - network, network};
}

}  // namespace

PoolTimes gathered_times(const Environment& environment, const PackedSequence& sequence,
                         const CpRun& run) {
  const Scenario& scenario = environment.scenario();
  const GroupLinks links(scenario, run.first_gpu);
  std::vector<RankCalls> ranks = per_document(environment, sequence);
  std::vector<RankCalls> others = per_sequence(environment, sequence);
  if (slowest(others) < slowest(ranks)) ranks.swap(others);

  const std::int32_t cp = scenario.plan.cp;
  const double foreign = static_cast<double>(sample_tokens(sequence)) * (cp - 1) / cp;
  const double gather = foreign * kv_bytes(scenario);
  const double scatter = foreign * dkv_bytes(scenario);
  const double forward_s = collective_seconds(scenario, links, gather);
  const double backward_s = forward_s + collective_seconds(scenario, links, scatter);
  PoolTimes times;
  times.workers.reserve(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const double slowness =
        environment.slowness(run.first_gpu + static_cast<std::int64_t>(rank), run.step);
    const double forward = ranks[rank].forward() * slowness;
    const double backward = ranks[rank].backward() * slowness;
    times.workers.push_back({forward, forward + forward_s, backward, backward + backward_s});
    times.work += ranks[rank].work();
  }
  times.forward_bytes = collective_bytes(scenario, links, gather);
  times.backward_bytes = collective_bytes(scenario, links, gather + scatter);
  times.extra_memory_bytes = static_cast<std::int64_t>(gather + scatter);
  return times;
}

namespace {

// In each of the CP ring steps a rank does as much of a document of l tokens, in the same shape, as
// there is in a document of l / CP tokens: in the first step itself, in the others the half that
// the mask leaves of two chunks against two. Scaled so that all steps of all ranks together are
// exactly the document's pairs.
RankCalls ring_step(const Environment& environment, const PackedSequence& sequence) {
  const std::int64_t cp = environment.scenario().plan.cp;
  RankCalls step(environment);
  for (const std::int64_t tokens : sequence.sample_tokens) {
    const TokenRange share = {0, (tokens + cp - 1) / cp};
    const std::int64_t computed = query_key_pairs(share) * cp * cp;
    if (computed == 0) continue;
    step.add_scaled(
        share, static_cast<double>(query_key_pairs({0, tokens})) / static_cast<double>(computed));
  }
  return step;
}

// CP - 1 transfers, each under the computation of the step before it.
double ring_seconds(double compute_step, double transfer, std::int32_t cp, double loss) {
  const double together =
      std::max(compute_step + loss * std::min(compute_step, transfer), transfer);
  return together * (cp - 1) + compute_step;
}

std::int64_t work_of(const PackedSequence& sequence, const AttentionShape& shape) {
  std::int64_t work = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    work += query_key_pairs({0, tokens}) * shape.q_heads;
  }
  return work;
}

}  // namespace

PoolTimes ring_times(const Environment& environment, const PackedSequence& sequence,
                     const CpRun& run) {
  const Scenario& scenario = environment.scenario();
  const Cluster& cluster = scenario.cluster;
  const GroupLinks links(scenario, run.first_gpu);
  const RankCalls step = ring_step(environment, sequence);
  const std::int32_t cp = scenario.plan.cp;

  // The ring's slowest hop sets its pace.
  const bool network = links.nodes > 1;
  const double rate = (network ? cluster.inter_node_gb_per_s : cluster.nvlink_gb_per_s) * kGiga;
  const double latency =
      (network ? cluster.inter_node_latency_us : cluster.nvlink_latency_us) * kMicro;
  const double share = static_cast<double>(sample_tokens(sequence)) / cp;
  const double forward_hop = share * kv_bytes(scenario);
  const double backward_hop = forward_hop + share * dkv_bytes(scenario);
  PoolTimes times;
  for (std::int32_t rank = 0; rank < cp; ++rank) {
    const double slowness = environment.slowness(run.first_gpu + rank, run.step);
    const double forward = step.forward() * slowness;
    const double backward = step.backward() * slowness;
    times.workers.push_back(
        {forward * cp,
         ring_seconds(forward, forward_hop / rate + latency, cp, cluster.overlap_loss),
         backward * cp,
         ring_seconds(backward, backward_hop / rate + latency, cp, cluster.overlap_loss)});
  }
  times.work = work_of(sequence, scenario.plan.shape);
  // A ring crosses from each node to the next once.
  const double crossing = network ? static_cast<double>(links.nodes) / cp : 0;
  for (const auto& [hop, bytes] : {std::pair(forward_hop, &times.forward_bytes),
                                   std::pair(backward_hop, &times.backward_bytes)}) {
    const double total = hop * cp * (cp - 1);
    *bytes = {total * (1 - crossing), total * crossing};
  }
  times.extra_memory_bytes = static_cast<std::int64_t>(2 * (forward_hop + backward_hop));
  return times;
}

}  // namespace libra
