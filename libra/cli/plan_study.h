// The figures of `libra plan`: every pool of every window, planned with every placer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libra/cli/job.h"
#include "libra/plan/pool_assignment.h"

namespace libra::cli {

/// Smallest and largest that any plan uses.
struct UsedRange {
  std::int32_t smallest = std::numeric_limits<std::int32_t>::max();
  std::int32_t largest = 0;

  void add(std::int32_t value) {
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
};

/// Of one placer, over all pools. Bytes are per layer, means over the pools.
struct PlacerFigures {
  PlacerPlan plan;
  std::int64_t pools = 0;
  UsedRange chunks;                ///< --memory-cap may take more than plan.options say
  UsedRange head_shards;           ///< --cluster may
  UsedRange tau_ppm;               ///< likewise
  std::int64_t refetch_pools = 0;  ///< pools whose plan refetches, likewise
  double max_over_mean_mean = 0;
  double max_over_mean_worst = 0;
  double bytes_total = 0;       ///< forward
  double bytes_inter_node = 0;  ///< forward
  double bytes_bound = 0;       ///< forward: the fewest for this balance (traffic_bound.h)
  double max_in_bytes = 0;      ///< forward
  double max_out_bytes = 0;     ///< forward
  double bytes_backward = 0;    ///< in the mode that each pool uses
  double bytes_backward_keep = 0;
  double bytes_backward_refetch = 0;
  double tiles = 0;
  double tiles_moved = 0;
  double arena_bytes = 0;             ///< of the fullest worker
  double memory_bytes = 0;            ///< likewise, saved and scratch too
  std::int64_t memory_bytes_max = 0;  ///< over the pools
  double plan_us = 0;                 ///< median
  std::vector<double> plan_times_us;
};

struct PlanStudy {
  std::int64_t steps = 0;
  std::int64_t epochs = 0;
  std::array<double, kGroupings.size()>
      r_minus_1{};                  ///< means over the steps, in the order of kGroupings
  double r_by_index_minus_1 = 0;    ///< the same of the pools that are planned, by GA index
  std::vector<std::int32_t> order;  ///< of the first window: sequences in the order of its pools
  double cost_us = 0;               ///< median: the work of all sequences of a window
  double grouping_us = 0;           ///< median: grouping it
  std::vector<PlacerFigures> placers;
  std::string first_plan;  ///< if asked for: the file of the first pool of the first window
};

/// Plans `steps` windows. `save`: the file name that decides the form of first_plan; empty: none.
PlanStudy study_plans(Job& job, std::int64_t steps, const std::string& save,
                      const Console& console);

/// The placer whose plan is saved: the last that was not skipped.
const PlacerPlan& saved_placer(const Job& job);

}  // namespace libra::cli
