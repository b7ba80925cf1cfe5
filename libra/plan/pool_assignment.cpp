#include "libra/plan/pool_assignment.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/names.h"
#include "libra/cost/attention_shape.h"
#include "libra/plan/rules.h"

namespace libra {
namespace {

constexpr Names<Grouping, kGroupings.size()> kNames = {{{Grouping::kProduction, "production"},
                                                        {Grouping::kZigzag, "zigzag"},
                                                        {Grouping::kZigzagSwap, "zigzag_swap"},
                                                        {Grouping::kVrsp, "vrsp"},
                                                        {Grouping::kVrspRefined, "vrsp_refined"}}};

// Indices by decreasing cost; equal costs keep their original order.
std::vector<std::int32_t> heaviest_first(std::span<const std::int64_t> costs) {
  std::vector<std::pair<std::int64_t, std::int32_t>> keys(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i)
    keys[i] = {-costs[i], static_cast<std::int32_t>(i)};
  std::sort(keys.begin(), keys.end());
  std::vector<std::int32_t> order(costs.size());
  for (std::size_t i = 0; i < costs.size(); ++i) order[i] = keys[i].second;
  return order;
}

// Collects sequences into pools in any order; slots of a pool fill from the front.
class PoolFiller {
 public:
  PoolFiller(std::size_t sequences, std::int32_t pool_size)
      : assignment_{pool_size, std::vector<std::int32_t>(sequences, -1)},
        filled_(sequences / at(pool_size), 0) {}

  bool full(std::int32_t pool) const { return filled_[at(pool)] == assignment_.pool_size; }
  void put(std::int32_t pool, std::int32_t sequence) {
    assignment_.order[at(pool * assignment_.pool_size + filled_[at(pool)]++)] = sequence;
  }
  PoolAssignment take() { return std::move(assignment_); }

 private:
  PoolAssignment assignment_;
  std::vector<std::int32_t> filled_;
};

PoolAssignment production(std::span<const std::int64_t> costs, std::int32_t pool_size) {
  PoolAssignment assignment{pool_size, std::vector<std::int32_t>(costs.size())};
  std::iota(assignment.order.begin(), assignment.order.end(), 0);
  return assignment;
}

PoolAssignment zigzag(std::span<const std::int64_t> costs, std::int32_t pool_size) {
  PoolFiller filler(costs.size(), pool_size);
  const auto pools = static_cast<std::int32_t>(costs.size()) / pool_size;
  std::int32_t dealt = 0;
  for (const std::int32_t sequence : heaviest_first(costs)) {
    const std::int32_t lap = dealt / pools;
    const std::int32_t step = dealt % pools;
    filler.put(lap % 2 == 0 ? step : pools - 1 - step, sequence);
    ++dealt;
  }
  return filler.take();
}

// Algorithm 1. The heap holds the pools that are not full; its top is the least loaded, ties to the
// lower index.
PoolAssignment vrsp(std::span<const std::int64_t> costs, std::int32_t pool_size) {
  PoolFiller filler(costs.size(), pool_size);
  const auto pools = static_cast<std::int32_t>(costs.size()) / pool_size;
  using Load = std::pair<std::int64_t, std::int32_t>;
  std::vector<Load> start;
  start.reserve(at(pools));
  for (std::int32_t pool = 0; pool < pools; ++pool) start.emplace_back(0, pool);
  std::priority_queue<Load, std::vector<Load>, std::greater<>> open(std::greater<>{},
                                                                    std::move(start));
  for (const std::int32_t sequence : heaviest_first(costs)) {
    const auto [load, pool] = open.top();
    open.pop();
    filler.put(pool, sequence);
    if (!filler.full(pool)) open.emplace(load + costs[at(sequence)], pool);
  }
  return filler.take();
}

std::vector<std::int64_t> pool_loads(std::span<const std::int64_t> costs,
                                     const PoolAssignment& assignment) {
  std::vector<std::int64_t> loads(at(assignment.pools()), 0);
  for (std::int32_t pool = 0; pool < assignment.pools(); ++pool) {
    for (const std::int32_t sequence : assignment.pool(pool))
      loads[at(pool)] += costs[at(sequence)];
  }
  return loads;
}

// The exchange between two pools that brings their loads closest together. False if none lowers the
// heavier of the two.
bool swap_between(std::span<const std::int64_t> costs, PoolAssignment& assignment,
                  std::vector<std::int64_t>& loads, std::int64_t heavy, std::int64_t light) {
  const std::int64_t gap = loads[at(heavy)] - loads[at(light)];
  std::int64_t best_gain = 0;
  std::pair<std::size_t, std::size_t> best;
  for (std::int64_t i = heavy * assignment.pool_size; i < (heavy + 1) * assignment.pool_size; ++i) {
    for (std::int64_t j = light * assignment.pool_size; j < (light + 1) * assignment.pool_size;
         ++j) {
      const std::int64_t moved =
          costs[at(assignment.order[at(i)])] - costs[at(assignment.order[at(j)])];
      const std::int64_t gain = std::min(moved, gap - moved);
      if (gain > best_gain) {
        best_gain = gain;
        best = {at(i), at(j)};
      }
    }
  }
  if (best_gain == 0) return false;
  const std::int64_t moved =
      costs[at(assignment.order[best.first])] - costs[at(assignment.order[best.second])];
  std::swap(assignment.order[best.first], assignment.order[best.second]);
  loads[at(heavy)] -= moved;
  loads[at(light)] += moved;
  return true;
}

PoolAssignment zigzag_swap(std::span<const std::int64_t> costs, std::int32_t pool_size) {
  PoolAssignment assignment = zigzag(costs, pool_size);
  std::vector<std::int64_t> loads = pool_loads(costs, assignment);
  const auto swap_once = [&] {
    const auto heavy = std::max_element(loads.begin(), loads.end()) - loads.begin();
    const auto light = std::min_element(loads.begin(), loads.end()) - loads.begin();
    return swap_between(costs, assignment, loads, heavy, light);
  };
  // Every exchange lowers the sum of squared loads, so this ends.
  while (swap_once()) {
  }
  return assignment;
}

// VRSP, then exchanges of the heaviest pool with the lightest that can take work from it.
PoolAssignment vrsp_refined(std::span<const std::int64_t> costs, std::int32_t pool_size) {
  PoolAssignment assignment = vrsp(costs, pool_size);
  std::vector<std::int64_t> loads = pool_loads(costs, assignment);
  std::vector<std::int32_t> lightest(loads.size());
  std::iota(lightest.begin(), lightest.end(), 0);
  const auto swap_once = [&] {
    const auto heavy = std::max_element(loads.begin(), loads.end()) - loads.begin();
    std::stable_sort(lightest.begin(), lightest.end(), [&loads](std::int32_t a, std::int32_t b) {
      return loads[at(a)] < loads[at(b)];
    });
    return std::any_of(lightest.begin(), lightest.end(), [&](std::int32_t light) {
      return light != heavy && swap_between(costs, assignment, loads, heavy, light);
    });
  };
  while (swap_once()) {
  }
  return assignment;
}

// So that every sum of costs fits into 64 bits.
void check_costs(std::span<const std::int64_t> costs) {
  std::int64_t left = kMaxWindowCost;
  for (const std::int64_t cost : costs) {
    if (cost < 0 || cost > left) {
      throw ConfigError(fmt::format(
          "a sequence of cost {}: costs must not be negative, nor more than {} together: use "
          "shorter or fewer sequences",
          cost, kMaxWindowCost));
    }
    left -= cost;
  }
}

}  // namespace

std::string_view grouping_name(Grouping grouping) { return name_of(kNames, grouping); }
Grouping parse_grouping(std::string_view name) { return parse_name(kNames, "grouping", name); }

void check_window(std::int64_t gbs, std::int64_t dp, std::int64_t pool_size) {
  require_positive("GBS", gbs);
  require_at_most("GBS", gbs, 1 << 24);
  require_positive("DP", dp);
  require_positive("the pool size P", pool_size);
  require_divides("DP", dp, "GBS", gbs);
  require_divides("the pool size P", pool_size, "DP", dp);
}

PoolSlot pool_slot(std::int32_t pool, std::int32_t dp, std::int32_t pool_size) {
  const std::int32_t at_once = dp / pool_size;
  return {pool / at_once, pool % at_once};
}

std::int64_t sequence_cost(const PackedSequence& sequence) {
  std::int64_t pairs = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) pairs += query_key_pairs({0, tokens});
  return pairs;
}

PoolAssignment assign_pools(std::span<const std::int64_t> costs, std::int32_t pool_size,
                            Grouping grouping) {
  require_positive("the pool size P", pool_size);
  require_divides("the pool size P", pool_size, "the number of sequences in the window",
                  static_cast<std::int64_t>(costs.size()));
  check_costs(costs);
  switch (grouping) {
    case Grouping::kProduction:
      return production(costs, pool_size);
    case Grouping::kZigzag:
      return zigzag(costs, pool_size);
    case Grouping::kZigzagSwap:
      return zigzag_swap(costs, pool_size);
    case Grouping::kVrsp:
      return vrsp(costs, pool_size);
    case Grouping::kVrspRefined:
      return vrsp_refined(costs, pool_size);
  }
  LIBRA_CHECK(false, "grouping {} has no algorithm", static_cast<int>(grouping));
  return {};
}

PoolAssignment by_load(std::span<const std::int64_t> costs, const PoolAssignment& assignment) {
  PoolAssignment ordered{assignment.pool_size, {}};
  ordered.order.reserve(assignment.order.size());
  for (const std::int32_t k : heaviest_first(pool_loads(costs, assignment))) {
    const auto pool = assignment.pool(k);
    ordered.order.insert(ordered.order.end(), pool.begin(), pool.end());
  }
  return ordered;
}

double imbalance(std::span<const std::int64_t> costs, const PoolAssignment& assignment) {
  return imbalance_by_index(costs, assignment, std::max(assignment.pools(), 1));
}

double imbalance_by_index(std::span<const std::int64_t> costs, const PoolAssignment& assignment,
                          std::int32_t at_once) {
  require_positive("the number of pools at once", at_once);
  const std::vector<std::int64_t> loads = pool_loads(costs, assignment);
  std::int64_t total = 0;
  double waited_for = 0;  // each pool for the heaviest of its GA index
  for (auto index = loads.begin(); index != loads.end();) {
    const auto next = index + std::min<std::ptrdiff_t>(at_once, loads.end() - index);
    total += std::accumulate(index, next, std::int64_t{0});
    waited_for +=
        static_cast<double>(*std::max_element(index, next)) * static_cast<double>(next - index);
    index = next;
  }
  return total == 0 ? 1.0 : waited_for / static_cast<double>(total);
}

}  // namespace libra
