// Plans for a given cluster: a plan is only worth its bytes if the links carry them in the time it
// saves.
//
//   const PoolPlan plan = make_plan_for(cluster, options, sequences, compute_cost(device));
//
// The prediction is coarse on purpose, a port's bytes over its rate beside a worker's computation;
// libra/sim replays a plan phase by phase.
#pragma once

#include <vector>

#include "libra/cost/cluster.h"
#include "libra/plan/pool_plan.h"

namespace libra {

/// Of one layer, forward and backward, until the last worker is done. Each pass takes as long as
/// its computation or the bytes through its busiest port, whichever is longer, what the one costs
/// the other, the exchange that no chunk hides, and, backward, the additions of gradients that
/// others computed. Requires a plan made with `cost`.
double predicted_seconds(const PoolPlan& plan, const Cluster& cluster, const ComputeCost& cost);

/// With placers `reserve` and `balanced` the plan of the least predicted time among: make_plan's;
/// if that had to cut large tiles, the same with them whole; with twice the head shards, and twice
/// again, while that helps; with a tau 4, 16 and 64 times as large while that helps; with additions
/// of gradients counted as load, where tau is broken with them; and every tile at home.
/// Where the pool has several nodes with node fetch, unless it is faster without. With other
/// placers make_plan's. The cluster's nodes take the place of `gpus_per_node`. Throws as make_plan.
PoolPlan make_plan_for(const Cluster& cluster, const PlanOptions& options,
                       const std::vector<PackedSequence>& sequences, const ComputeCost& cost);

}  // namespace libra
