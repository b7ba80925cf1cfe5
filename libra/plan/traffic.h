// Bytes that a plan moves per layer, in total, by worker and by link: what the simulator times and
// the CLI prints.
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

/// Q, K, V out and O back (LSE too where the plan returns it), one layer.
TrafficReport forward_traffic(const PoolPlan& plan);

/// One layer's backward as the plan's mode has it: keep: dO out, dQ and fp32 dK, dV back; refetch:
/// Q, K, V, O and LSE out again besides.
TrafficReport backward_traffic(const PoolPlan& plan);
TrafficReport backward_traffic(const PoolPlan& plan, BackwardMode mode);

/// Of these, what belongs to keys: K and V; dK and dV (and K and V again under kRefetch). It goes
/// with the first, or comes after the last, chunk that reads a KV head.
TrafficReport forward_key_traffic(const PoolPlan& plan);
TrafficReport backward_key_traffic(const PoolPlan& plan);

}  // namespace libra
