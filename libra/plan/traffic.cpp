#include "libra/plan/traffic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/index.h"
#include "libra/cost/bytes.h"

namespace libra {
namespace {

// Bytes of one row of one shard, all chunks together.
struct RowBytes {
  std::int64_t q, o, lse, kv, kv_gradient;

  explicit RowBytes(const PoolPlan& plan) {
    const HeadSplit heads = plan.heads();
    const AttentionShape& shape = plan.options.shape;
    const DType storage = plan.options.storage;
    q = q_token_bytes(shape, heads.shard_heads, storage);
    o = o_token_bytes(shape, heads.shard_heads, storage);
    lse = lse_token_bytes(heads.shard_heads, storage);
    kv = kv_token_bytes(shape, heads.kv_shard_heads, storage);
    kv_gradient = dkv_token_bytes(shape, heads.kv_shard_heads, storage);
  }
};

class FlowCounter {
 public:
  /// `out` bytes per row along the moves, `back` against them.
  void add(const std::vector<RowMove>& moves, std::int64_t out, std::int64_t back) {
    for (const RowMove& move : moves) {
      if (out > 0) add({move.from, move.to, move.rows * out});
      if (back > 0) add({move.to, move.from, move.rows * back});
    }
  }

  TrafficReport report(std::int32_t workers) {
    std::sort(flows_.begin(), flows_.end(), [](const Flow& a, const Flow& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    TrafficReport report{workers, {}};
    for (const Flow& flow : flows_) join(report.flows, flow);
    return report;
  }

 private:
  void add(const Flow& flow) { join(flows_, flow); }

  static void join(std::vector<Flow>& flows, const Flow& flow) {
    if (!flows.empty() && flows.back().from == flow.from && flows.back().to == flow.to) {
      flows.back().bytes += flow.bytes;
    } else {
      flows.push_back(flow);
    }
  }

  std::vector<Flow> flows_;  // neighbours joined; a pair may still be there several times
};

std::int64_t largest(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

void add_forward_keys(FlowCounter& counter, const PoolPlan& plan) {
  counter.add(plan.exchange.kv_moves, RowBytes(plan).kv, 0);
}

void add_backward_keys(FlowCounter& counter, const PoolPlan& plan, BackwardMode mode) {
  const RowBytes row(plan);
  const bool refetch = mode == BackwardMode::kRefetch;
  counter.add(plan.exchange.kv_moves, refetch ? row.kv : 0, row.kv_gradient);
}

}  // namespace

std::int64_t TrafficReport::total() const {
  return std::accumulate(flows.begin(), flows.end(), std::int64_t{0},
                         [](std::int64_t sum, const Flow& flow) { return sum + flow.bytes; });
}

std::vector<std::int64_t> TrafficReport::in_by_worker() const {
  std::vector<std::int64_t> bytes(at(workers), 0);
  for (const Flow& flow : flows) bytes[at(flow.to)] += flow.bytes;
  return bytes;
}

std::vector<std::int64_t> TrafficReport::out_by_worker() const {
  std::vector<std::int64_t> bytes(at(workers), 0);
  for (const Flow& flow : flows) bytes[at(flow.from)] += flow.bytes;
  return bytes;
}

std::int64_t TrafficReport::max_in() const { return largest(in_by_worker()); }
std::int64_t TrafficReport::max_out() const { return largest(out_by_worker()); }

std::int64_t TrafficReport::inter_node(std::int32_t gpus_per_node, std::int64_t first_gpu) const {
  LIBRA_CHECK(gpus_per_node > 0, "{} GPUs per node", gpus_per_node);
  std::int64_t bytes = 0;
  for (const Flow& flow : flows) {
    if ((first_gpu + flow.from) / gpus_per_node != (first_gpu + flow.to) / gpus_per_node)
      bytes += flow.bytes;
  }
  return bytes;
}

TrafficReport forward_traffic(const PoolPlan& plan) {
  const RowBytes row(plan);
  FlowCounter counter;
  counter.add(plan.exchange.q_moves, row.q, row.o + (plan.options.lse_goes_home() ? row.lse : 0));
  add_forward_keys(counter, plan);
  return counter.report(plan.workers());
}

TrafficReport backward_traffic(const PoolPlan& plan) {
  return backward_traffic(plan, plan.options.backward);
}

TrafficReport backward_traffic(const PoolPlan& plan, BackwardMode mode) {
  const RowBytes row(plan);
  const bool refetch = mode == BackwardMode::kRefetch;
  FlowCounter counter;
  counter.add(plan.exchange.q_moves, row.o + (refetch ? row.q + row.o + row.lse : 0), row.q);
  add_backward_keys(counter, plan, mode);
  return counter.report(plan.workers());
}

TrafficReport forward_key_traffic(const PoolPlan& plan) {
  FlowCounter counter;
  add_forward_keys(counter, plan);
  return counter.report(plan.workers());
}

TrafficReport backward_key_traffic(const PoolPlan& plan) {
  FlowCounter counter;
  add_backward_keys(counter, plan, plan.options.backward);
  return counter.report(plan.workers());
}

}  // namespace libra
