#include "libra/sim/distca_times.h"

#include <algorithm>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/sim/call_pair.h"
#include "libra/sim/distca_plan.h"
#include "libra/sim/overlap.h"

namespace libra {
namespace {

/// Of one token, all heads.
struct TokenBytes {
  std::int64_t q, kv, o, dkv;

  explicit TokenBytes(const Scenario& scenario) {
    const AttentionShape& shape = scenario.plan.shape;
    const DType storage = scenario.plan.storage;
    q = q_token_bytes(shape, shape.q_heads, storage);
    o = o_token_bytes(shape, shape.q_heads, storage);
    kv = kv_token_bytes(shape, shape.kv_heads, storage);
    dkv = dkv_token_bytes(shape, shape.kv_heads, storage);
  }
};

// Every item's rows go from home to worker once. The keys of a whole document come to each worker
// that computes a part of it, once, from where they are held.
class Exchange {
 public:
  Exchange(const Environment& environment, const std::vector<DistcaItem>& items,
           std::int32_t workers)
      : flows_(workers, environment.scenario().cluster, 0),
        query_rows_(at(workers), 0),
        key_rows_(at(workers), 0) {
    std::vector<DistcaItem> by_document = items;
    std::stable_sort(
        by_document.begin(), by_document.end(),
        [](const DistcaItem& a, const DistcaItem& b) { return a.document < b.document; });
    for (auto first = by_document.begin(); first != by_document.end();) {
      const auto last = std::find_if(first, by_document.end(), [first](const DistcaItem& item) {
        return item.document != first->document;
      });
      add_document({first, last});
      first = last;
    }
    flows_.finish();
  }

  const FlowTable& flows() const { return flows_; }

  /// What came to a worker for one layer and what it gives back, forward and backward; gradients of
  /// keys are added to the home's as they arrive.
  std::int64_t memory_bytes(std::size_t worker, const TokenBytes& token) const {
    return query_rows_[worker] * 2 * (token.q + token.o) +
           key_rows_[worker] * (token.kv + token.dkv);
  }
  std::int64_t max_memory_bytes(const TokenBytes& token) const {
    std::int64_t most = 0;
    for (std::size_t w = 0; w < key_rows_.size(); ++w)
      most = std::max(most, memory_bytes(w, token));
    return most;
  }

 private:
  void add_document(std::span<const DistcaItem> items) {
    std::vector<std::int32_t> computing;
    computing.reserve(items.size());
    for (const DistcaItem& item : items) {
      computing.push_back(item.worker);
      if (item.worker == item.home) continue;
      flows_.add(item.home, item.worker, item.positions.size(), 0);
      query_rows_[at(item.worker)] += item.positions.size();
    }
    std::sort(computing.begin(), computing.end());
    computing.erase(std::unique(computing.begin(), computing.end()), computing.end());
    for (const std::int32_t worker : computing) {
      for (const DistcaItem& held : items) {
        if (held.home == worker) continue;
        flows_.add(held.home, worker, 0, held.positions.size());
        key_rows_[at(worker)] += held.positions.size();
      }
    }
  }

  FlowTable flows_;
  std::vector<std::int64_t> query_rows_;  // that came to a worker
  std::vector<std::int64_t> key_rows_;
};

std::vector<CallPair> calls_by_worker(const Environment& environment,
                                      const std::vector<DistcaItem>& items, std::int32_t workers) {
  const PlanOptions& plan = environment.scenario().plan;
  std::vector<CallPair> calls(at(workers));
  for (const DistcaItem& item : items) {
    for (const TokenRange rows : {item.head(), item.tail()}) {
      if (rows.empty()) continue;
      calls[at(item.worker)].add(environment.device(), rows, plan.shape.q_heads / plan.head_shards);
    }
  }
  return calls;
}

RowBytes half(const RowBytes& row, bool out, bool back) {
  return {out ? row.q_out / 2 : 0, out ? row.kv_out / 2 : 0, back ? row.q_back / 2 : 0,
          back ? row.kv_back / 2 : 0};
}

// [phase][worker]: out, out, back, back.
std::vector<std::vector<double>> phases(const FlowTable& flows, const RowBytes& row) {
  const std::vector<double> out = flows.seconds(half(row, true, false));
  const std::vector<double> back = flows.seconds(half(row, false, true));
  return {out, out, back, back};
}

double pass_seconds(const std::vector<std::vector<double>>& exchange, std::size_t worker,
                    double compute, double loss) {
  ChunkedPassTimes pass{0, compute / 2, {}};
  for (const std::vector<double>& phase : exchange) pass.exchange_s.push_back(phase[worker]);
  return overlapped_seconds(pass, loss);
}

}  // namespace

PoolTimes distca_times(const Environment& environment, std::span<const PackedSequence> sequences,
                       double tolerance, std::int64_t step) {
  const Scenario& scenario = environment.scenario();
  const std::int32_t shards = scenario.plan.head_shards;
  const TokenBytes token(scenario);
  const std::vector<DistcaItem> items =
      distca_plan(sequences, {scenario.plan.cp, tolerance, token.q, token.kv});
  const auto workers = static_cast<std::int32_t>(sequences.size()) * scenario.plan.cp;
  const Exchange exchange(environment, items, workers);
  const FlowTable& flows = exchange.flows();
  const auto number = [](std::int64_t bytes) { return static_cast<double>(bytes); };
  const RowBytes forward_row = {number(token.q), number(token.kv), number(token.o), 0};
  const RowBytes backward_row = {number(token.o), 0, number(token.q), number(token.dkv)};
  const auto forward_exchange = phases(flows, forward_row);
  const auto backward_exchange = phases(flows, backward_row);
  const std::vector<CallPair> calls = calls_by_worker(environment, items, workers);

  const double loss = scenario.cluster.overlap_loss;
  PoolTimes times;
  times.workers.reserve(calls.size());
  for (std::size_t worker = 0; worker < calls.size(); ++worker) {
    const double scale = environment.slowness(static_cast<std::int64_t>(worker), step) * shards;
    const double forward =
        environment.seconds(calls[worker].forward.total_ps(environment.device())) * scale;
    const double backward =
        environment.seconds(calls[worker].backward.total_ps(environment.device())) * scale;
    times.workers.push_back({forward, pass_seconds(forward_exchange, worker, forward, loss),
                             backward, pass_seconds(backward_exchange, worker, backward, loss)});
    times.work += calls[worker].work * shards;
  }
  times.forward_bytes = flows.bytes(forward_row);
  times.backward_bytes = flows.bytes(backward_row);
  times.extra_memory_bytes = exchange.max_memory_bytes(token);
  check_port_rates(times, flows.busiest_port_seconds(forward_row),
                   flows.busiest_port_seconds(backward_row));
  return times;
}

}  // namespace libra
