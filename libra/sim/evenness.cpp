#include "libra/sim/evenness.h"

#include <algorithm>
#include <numeric>

namespace libra {

std::vector<std::int64_t> costs_of(std::span<const PackedSequence> window) {
  std::vector<std::int64_t> costs;
  costs.reserve(window.size());
  for (const PackedSequence& sequence : window) costs.push_back(sequence_cost(sequence));
  return costs;
}

double heaviest_over_mean(std::span<const PackedSequence> window) {
  const std::vector<std::int64_t> costs = costs_of(window);
  const auto total = static_cast<double>(std::accumulate(costs.begin(), costs.end(), 0LL));
  const auto heaviest = static_cast<double>(*std::max_element(costs.begin(), costs.end()));
  return total > 0 ? heaviest * static_cast<double>(costs.size()) / total : 1;
}

double mean_r_minus_1(const std::vector<std::vector<PackedSequence>>& windows, std::int32_t pool,
                      Grouping grouping) {
  double sum = 0;
  for (const auto& window : windows) {
    const std::vector<std::int64_t> costs = costs_of(window);
    sum += imbalance(costs, assign_pools(costs, pool, grouping)) - 1;
  }
  return sum / static_cast<double>(windows.size());
}

std::vector<std::size_t> spread_out(const std::vector<double>& unevenness, std::size_t count) {
  std::vector<std::size_t> order(unevenness.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&unevenness](std::size_t a, std::size_t b) {
    return unevenness[a] < unevenness[b];
  });
  if (order.size() <= count) return order;
  std::vector<std::size_t> picked;
  picked.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    picked.push_back(order[(2 * i + 1) * order.size() / (2 * count)]);
  }
  return picked;
}

}  // namespace libra
