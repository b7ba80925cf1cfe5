#include "libra/sim/cp_times.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/sim/call_pair.h"

namespace libra {
namespace {

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

// Ranks of the CP group that lie in one node.
struct NodeRanks {
  std::int32_t begin = 0;
  std::int32_t end = 0;

  std::int32_t size() const { return end - begin; }
};

std::vector<NodeRanks> ranks_by_node(const Scenario& scenario, std::int64_t first_gpu) {
  std::vector<NodeRanks> nodes;
  std::int64_t last_node = -1;
  for (std::int32_t rank = 0; rank < scenario.plan.cp; ++rank) {
    const std::int64_t node = (first_gpu + rank) / scenario.cluster.gpus_per_node;
    if (node != last_node) nodes.push_back({rank, rank});
    nodes.back().end = rank + 1;
    last_node = node;
  }
  return nodes;
}

// Every rank's share to all others, a row for each share. Each share enters another node once, at
// the GPU there with the sender's place; inside a node shares go round, so that every rank gets
// from its neighbour all that it does not have yet.
FlowTable gather_flows(const Scenario& scenario, std::int64_t first_gpu) {
  const std::int32_t cp = scenario.plan.cp;
  const std::vector<NodeRanks> nodes = ranks_by_node(scenario, first_gpu);
  std::vector<std::int64_t> from_network(at(cp), 0);
  FlowTable flows(cp, scenario.cluster, first_gpu);
  for (const NodeRanks& from : nodes) {
    for (const NodeRanks& to : nodes) {
      if (from.begin == to.begin) continue;
      for (std::int32_t place = 0; place < from.size(); ++place) {
        const std::int32_t receiver = to.begin + place % to.size();
        flows.add(from.begin + place, receiver, 0, 1);
        ++from_network[at(receiver)];
      }
    }
  }
  for (const NodeRanks& node : nodes) {
    for (std::int32_t rank = node.begin; rank < node.end; ++rank) {
      const std::int32_t next = rank + 1 < node.end ? rank + 1 : node.begin;
      flows.add(rank, next, 0, cp - 1 - from_network[at(next)]);
    }
  }
  flows.finish();
  return flows;
}

// To the next rank, a row for each share.
FlowTable ring_flows(const Scenario& scenario, std::int64_t first_gpu) {
  const std::int32_t cp = scenario.plan.cp;
  FlowTable flows(cp, scenario.cluster, first_gpu);
  for (std::int32_t rank = 0; rank < cp; ++rank) flows.add(rank, (rank + 1) % cp, 0, 1);
  flows.finish();
  return flows;
}

// Until all have what they wait for.
double collective_seconds(const FlowTable& flows, const RowBytes& row) {
  const std::vector<double> seconds = flows.seconds(row);
  return *std::max_element(seconds.begin(), seconds.end());
}

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
    for (CallTime* const call : {&one.forward, &one.backward}) call->scale(share);
    calls_.add(one);
  }

  double forward() const { return seconds(calls_.forward); }
  double backward() const { return seconds(calls_.backward); }
  std::int64_t work() const { return calls_.work * shards_; }

 private:
  double seconds(const CallTime& call) const {
    return environment_.seconds(call.total_ps(environment_.device())) * shards_;
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

}  // namespace

PoolTimes gathered_times(const Environment& environment, const PackedSequence& sequence,
                         const CpRun& run) {
  const Scenario& scenario = environment.scenario();
  std::vector<RankCalls> ranks = per_document(environment, sequence);
  std::vector<RankCalls> others = per_sequence(environment, sequence);
  if (slowest(others) < slowest(ranks)) ranks.swap(others);

  const std::int32_t cp = scenario.plan.cp;
  const FlowTable flows = gather_flows(scenario, run.first_gpu);
  const double share = static_cast<double>(sample_tokens(sequence)) / cp;
  const RowBytes gather = {0, share * kv_bytes(scenario), 0, 0};
  const RowBytes scatter = {0, 0, 0, share * dkv_bytes(scenario)};
  RowBytes both = gather;
  both += scatter;
  const double forward_s = collective_seconds(flows, gather);
  const double backward_s = forward_s + collective_seconds(flows, scatter);
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
  times.forward_bytes = flows.bytes(gather);
  times.backward_bytes = flows.bytes(both);
  times.extra_memory_bytes =
      static_cast<std::int64_t>((cp - 1) * (gather.kv_out + scatter.kv_back));
  check_port_rates(times, flows.busiest_port_seconds(gather), flows.busiest_port_seconds(both));
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
  const double loss = scenario.cluster.overlap_loss;
  const RankCalls step = ring_step(environment, sequence);
  const std::int32_t cp = scenario.plan.cp;
  const FlowTable flows = ring_flows(scenario, run.first_gpu);

  const double share = static_cast<double>(sample_tokens(sequence)) / cp;
  const double forward_bytes = share * kv_bytes(scenario);
  const double backward_bytes = forward_bytes + share * dkv_bytes(scenario);
  // The ring's slowest hop sets its pace.
  const double forward_hop = collective_seconds(flows, {0, forward_bytes, 0, 0});
  const double backward_hop = collective_seconds(flows, {0, backward_bytes, 0, 0});
  PoolTimes times;
  for (std::int32_t rank = 0; rank < cp; ++rank) {
    const double slowness = environment.slowness(run.first_gpu + rank, run.step);
    const double forward = step.forward() * slowness;
    const double backward = step.backward() * slowness;
    times.workers.push_back({forward * cp, ring_seconds(forward, forward_hop, cp, loss),
                             backward * cp, ring_seconds(backward, backward_hop, cp, loss)});
  }
  times.work = work_of(sequence, scenario.plan.shape);
  const RowBytes forward_row = {0, forward_bytes * (cp - 1), 0, 0};
  const RowBytes backward_row = {0, backward_bytes * (cp - 1), 0, 0};
  times.forward_bytes = flows.bytes(forward_row);
  times.backward_bytes = flows.bytes(backward_row);
  times.extra_memory_bytes = static_cast<std::int64_t>(2 * (forward_bytes + backward_bytes));
  check_port_rates(times, flows.busiest_port_seconds(forward_row),
                   flows.busiest_port_seconds(backward_row));
  return times;
}

}  // namespace libra
