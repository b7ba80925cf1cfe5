#include "libra/plan/traffic.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/index.h"
#include "libra/cost/bytes.h"

namespace libra {
namespace {

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

TrafficReport traffic(const PoolPlan& plan, const RowTraffic& row) {
  FlowCounter counter;
  counter.add(plan.exchange.q_moves, row.q_out, row.q_back);
  counter.add(plan.exchange.kv_moves, row.kv_out, row.kv_back);
  return counter.report(plan.workers());
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

RowTraffic forward_row_traffic(const PoolPlan& plan) {
  const HeadSplit heads = plan.heads();
  const AttentionShape& shape = plan.options.shape;
  const DType storage = plan.options.storage;
  const std::int64_t lse =
      plan.options.lse_goes_home() ? lse_token_bytes(heads.shard_heads, storage) : 0;
  return {q_token_bytes(shape, heads.shard_heads, storage),
          o_token_bytes(shape, heads.shard_heads, storage) + lse,
          kv_token_bytes(shape, heads.kv_shard_heads, storage), 0};
}

RowTraffic backward_row_traffic(const PoolPlan& plan, BackwardMode mode) {
  const HeadSplit heads = plan.heads();
  const AttentionShape& shape = plan.options.shape;
  const DType storage = plan.options.storage;
  const std::int64_t q = q_token_bytes(shape, heads.shard_heads, storage);
  const std::int64_t o = o_token_bytes(shape, heads.shard_heads, storage);
  RowTraffic row{o, q, 0, dkv_token_bytes(shape, heads.kv_shard_heads, storage)};
  if (mode == BackwardMode::kRefetch) {
    row.q_out += q + o + lse_token_bytes(heads.shard_heads, storage);
    row.kv_out = kv_token_bytes(shape, heads.kv_shard_heads, storage);
  }
  return row;
}

std::vector<std::int64_t> addition_bytes(const PoolPlan& plan) {
  constexpr std::int64_t kReadReadWrite = 3;  // a share, the sum, and the sum again
  const std::int64_t row_bytes =
      kReadReadWrite *
      dkv_token_bytes(plan.options.shape, plan.heads().kv_shard_heads, plan.options.storage);
  std::vector<std::int64_t> bytes(at(plan.workers()), 0);
  for (const RowMove& move : plan.exchange.kv_moves) bytes[at(move.from)] += move.rows * row_bytes;
  for (const RowMove& copy : plan.exchange.kv_copies) bytes[at(copy.to)] += copy.rows * row_bytes;
  return bytes;
}

TrafficReport forward_traffic(const PoolPlan& plan) {
  return traffic(plan, forward_row_traffic(plan));
}

TrafficReport backward_traffic(const PoolPlan& plan) {
  return backward_traffic(plan, plan.options.backward);
}

TrafficReport backward_traffic(const PoolPlan& plan, BackwardMode mode) {
  return traffic(plan, backward_row_traffic(plan, mode));
}

}  // namespace libra
