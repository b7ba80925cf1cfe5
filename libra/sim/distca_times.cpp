#include "libra/sim/distca_times.h"

#include <algorithm>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/sim/call_time.h"
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

// Which worker holds how many tokens of a document: its keys come from there.
class Holders {
 public:
  explicit Holders(const std::vector<DistcaItem>& items) : items_(items) {
    order_.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&items](std::size_t a, std::size_t b) {
      return items[a].document < items[b].document;
    });
  }

  void add_fetch(const DistcaItem& item, FlowTable& flows) const {
    const auto first = std::lower_bound(
        order_.begin(), order_.end(), item.document,
        [this](std::size_t i, std::int32_t document) { return items_[i].document < document; });
    for (auto i = first; i != order_.end() && items_[*i].document == item.document; ++i) {
      flows.add(items_[*i].home, item.worker, 0, items_[*i].positions.size());
    }
  }

 private:
  const std::vector<DistcaItem>& items_;
  std::vector<std::size_t> order_;
};

FlowTable flow_table(const Environment& environment, const std::vector<DistcaItem>& items,
                     std::int32_t workers) {
  FlowTable flows(workers, environment.scenario().cluster, 0);
  const Holders holders(items);
  for (const DistcaItem& item : items) {
    if (item.worker == item.home) continue;
    flows.add(item.home, item.worker, item.positions.size(), 0);
    holders.add_fetch(item, flows);
  }
  flows.finish();
  return flows;
}

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
  const FlowTable flows = flow_table(environment, items, workers);
  const auto number = [](std::int64_t bytes) { return static_cast<double>(bytes); };
  const RowBytes forward_row = {number(token.q), number(token.kv), number(token.o), 0};
  const RowBytes backward_row = {number(token.o), 0, number(token.q), number(token.dkv)};
  const auto forward_exchange = phases(flows, forward_row);
  const auto backward_exchange = phases(flows, backward_row);
  const std::vector<CallPair> calls = calls_by_worker(environment, items, workers);

  const std::int64_t launch = environment.device().data().launch_ps;
  const double loss = scenario.cluster.overlap_loss;
  PoolTimes times;
  times.workers.reserve(calls.size());
  for (std::size_t worker = 0; worker < calls.size(); ++worker) {
    const double scale = environment.slowness(static_cast<std::int64_t>(worker), step) * shards;
    const double forward = environment.seconds(calls[worker].forward.total_ps(launch)) * scale;
    const double backward = environment.seconds(calls[worker].backward.total_ps(launch)) * scale;
    times.workers.push_back({forward, pass_seconds(forward_exchange, worker, forward, loss),
                             backward, pass_seconds(backward_exchange, worker, backward, loss)});
    times.work += calls[worker].work * shards;
  }
  times.forward_bytes = flows.bytes(forward_row);
  times.backward_bytes = flows.bytes(backward_row);
  return times;
}

}  // namespace libra
