// Bytes that a plan moves per layer, in total, by worker and by link, and those that are added up:
// what the simulator times and the CLI prints.
//
//   TrafficReport traffic = forward_traffic(plan);
//   traffic.total; traffic.inter_node(8); traffic.max_in();
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/pool_plan.h"

namespace libra {

/// Bytes between every ordered pair of workers that exchange anything.
struct Flow {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Flow&, const Flow&) = default;
};

/// Bytes of a pass for each row of a move: along it, and back against it. All heads of a shard.
struct RowTraffic {
  std::int64_t q_out = 0;
  std::int64_t q_back = 0;
  std::int64_t kv_out = 0;
  std::int64_t kv_back = 0;
};

/// Q, K, V out and O back (LSE too where the plan returns it).
RowTraffic forward_row_traffic(const PoolPlan& plan);
/// keep: dO out, dQ and fp32 dK, dV back; refetch: Q, K, V, O and LSE out again besides.
RowTraffic backward_row_traffic(const PoolPlan& plan, BackwardMode mode);

/// By worker, bytes that it reads and writes in device memory to add up dK and dV: what guests
/// computed, at their homes and relays, and its own shares of groups that it fetches.
std::vector<std::int64_t> addition_bytes(const PoolPlan& plan);

struct TrafficReport {
  std::int32_t workers = 0;
  std::vector<Flow> flows;  ///< by (from, to), each pair once

  std::int64_t total() const;
  std::vector<std::int64_t> in_by_worker() const;
  std::vector<std::int64_t> out_by_worker() const;
  std::int64_t max_in() const;
  std::int64_t max_out() const;
  /// Bytes between workers on different nodes; the pool's worker 0 is GPU `first_gpu` of the job.
  std::int64_t inter_node(std::int32_t gpus_per_node, std::int64_t first_gpu = 0) const;
};

/// Of one layer; backward as the plan's mode has it unless another is given.
TrafficReport forward_traffic(const PoolPlan& plan);
TrafficReport backward_traffic(const PoolPlan& plan);
TrafficReport backward_traffic(const PoolPlan& plan, BackwardMode mode);

}  // namespace libra
