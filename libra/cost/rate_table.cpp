#include "libra/cost/rate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "libra/base/error.h"
#include "libra/cost/fixed_log.h"

namespace libra {
namespace {

constexpr int kWeightBits = 16;
constexpr std::int64_t kMaxNode = std::int64_t{1} << 24;
constexpr std::int64_t kMaxGflops = 1'000'000'000;

void check_axis(std::string_view field, const std::vector<std::int64_t>& nodes) {
  if (nodes.empty()) throw ConfigError(fmt::format("{} must have at least one value", field));
  for (const std::int64_t node : nodes) {
    if (node >= 1 && node <= kMaxNode) continue;
    throw ConfigError(fmt::format("{} has {}: must be in [1, {}]", field, node, kMaxNode));
  }
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i - 1] < nodes[i]) continue;
    throw ConfigError(fmt::format("{} must rise: {} after {}", field, nodes[i], nodes[i - 1]));
  }
}

RateGrid validated(RateGrid grid) {
  validate(grid);
  return grid;
}

std::vector<std::int64_t> logs_of(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> logs;
  logs.reserve(values.size());
  for (const std::int64_t value : values) {
    logs.push_back(fixed_log::log2_fixed(static_cast<std::uint64_t>(value)));
  }
  return logs;
}

std::int64_t blend(std::int64_t lower, std::int64_t upper, std::int64_t weight) {
  return lower + (((upper - lower) * weight) >> kWeightBits);
}

}  // namespace

void validate(const RateGrid& grid) {
  check_axis("queries", grid.queries);
  check_axis("keys", grid.keys);
  check_axis("heads", grid.heads);
  const std::size_t nodes = grid.queries.size() * grid.keys.size() * grid.heads.size();
  if (grid.gflops.size() != nodes) {
    throw ConfigError(
        fmt::format("tflops has {} rates: must have {}, one per heads x queries x keys",
                    grid.gflops.size(), nodes));
  }
  for (const std::int64_t rate : grid.gflops) {
    if (rate >= 1 && rate <= kMaxGflops) continue;
    throw ConfigError(fmt::format("tflops has {}: must be in [0.001, {}]",
                                  static_cast<double>(rate) / 1000.0, kMaxGflops / 1000));
  }
}

RateTable::Axis::Axis(const std::vector<std::int64_t>& nodes)
    : nodes_(nodes), logs_(logs_of(nodes)) {
  for (std::size_t i = 0; i + 1 < logs_.size(); ++i) {
    const std::int64_t width = std::max<std::int64_t>(logs_[i + 1] - logs_[i], 1);
    reciprocals_.push_back((std::int64_t{1} << (fixed_log::kFractionBits + kWeightBits)) / width);
  }
}

RateTable::Axis::Position RateTable::Axis::locate(std::int64_t value) const {
  if (value <= nodes_.front()) return {0, 0};
  if (value >= nodes_.back()) {
    return {nodes_.size() - 1 - step(), std::int64_t{1} << kWeightBits};
  }
  std::size_t index = 0;
  while (value >= nodes_[index + 1]) ++index;
  const std::int64_t into = fixed_log::log2_fixed(static_cast<std::uint64_t>(value)) - logs_[index];
  return {index, (into * reciprocals_[index]) >> fixed_log::kFractionBits};
}

RateTable::RateTable(RateGrid grid)
    : grid_(validated(std::move(grid))),
      queries_(grid_.queries),
      keys_(grid_.keys),
      heads_(grid_.heads),
      logs_(logs_of(grid_.gflops)) {}

std::int64_t RateTable::log2_rate(std::int64_t queries, std::int64_t keys,
                                  std::int64_t heads) const {
  const Axis::Position q = queries_.locate(queries);
  const Axis::Position k = keys_.locate(keys);
  const Axis::Position h = heads_.locate(heads);
  const std::size_t row = keys_.size() * queries_.step();
  const std::size_t plane = keys_.size() * queries_.size() * heads_.step();
  const std::int64_t* corner =
      &logs_[(h.index * queries_.size() + q.index) * keys_.size() + k.index];
  const auto along_keys = [&](std::size_t offset) {
    return blend(corner[offset], corner[offset + keys_.step()], k.weight);
  };
  const auto along_queries = [&](std::size_t offset) {
    return blend(along_keys(offset), along_keys(offset + row), q.weight);
  };
  return blend(along_queries(0), along_queries(plane), h.weight);
}

}  // namespace libra
