#include "libra/sim/links.h"

#include <algorithm>
#include <array>
#include <utility>

#include "libra/base/index.h"

namespace libra {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;

}  // namespace

void FlowTable::add(std::int32_t from, std::int32_t to, std::int64_t q_rows, std::int64_t kv_rows,
                    std::int64_t relay_rows) {
  if (from == to) return;
  if (flows_.empty() || flows_.back().from != from || flows_.back().to != to) {
    const bool inter =
        (first_gpu_ + from) / cluster_.gpus_per_node != (first_gpu_ + to) / cluster_.gpus_per_node;
    flows_.push_back({from, to, inter});
  }
  flows_.back().q_rows += static_cast<double>(q_rows);
  flows_.back().kv_rows += static_cast<double>(kv_rows);
  flows_.back().relay_rows += static_cast<double>(relay_rows);
}

void FlowTable::finish() {
  std::sort(flows_.begin(), flows_.end(), [](const FlowRows& a, const FlowRows& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < flows_.size(); ++i) {
    FlowRows& last = flows_[kept];
    if (last.from == flows_[i].from && last.to == flows_[i].to) {
      last.q_rows += flows_[i].q_rows;
      last.kv_rows += flows_[i].kv_rows;
      last.relay_rows += flows_[i].relay_rows;
    } else {
      flows_[++kept] = flows_[i];
    }
  }
  if (!flows_.empty()) flows_.resize(kept + 1);
}

std::vector<FlowTable::Ports> FlowTable::ports(const RowBytes& row) const {
  const std::array<double, 2> rates = {cluster_.nvlink_gb_per_s * kGiga,
                                       cluster_.inter_node_gb_per_s * kGiga};
  std::vector<Ports> ports(at(workers_));
  for (const FlowRows& flow : flows_) {
    const auto link = static_cast<std::size_t>(flow.inter_node);
    const double out = flow.out(row) / rates.at(link);
    const double back = flow.back(row) / rates.at(link);
    ports[at(flow.from)].out[link] += out;
    ports[at(flow.to)].in[link] += out;
    ports[at(flow.to)].out[link] += back;
    ports[at(flow.from)].in[link] += back;
  }
  return ports;
}

std::vector<double> FlowTable::seconds(const RowBytes& row) const {
  const std::vector<Ports> busy = ports(row);
  const std::array<double, 2> latencies = {cluster_.nvlink_latency_us * kMicro,
                                           cluster_.inter_node_latency_us * kMicro};
  std::vector<double> seconds(at(workers_), 0);
  const auto transfer = [&](std::int32_t from, std::int32_t to, std::size_t link) {
    const double until =
        std::max(busy[at(from)].out[link], busy[at(to)].in[link]) + latencies.at(link);
    seconds[at(from)] = std::max(seconds[at(from)], until);
    seconds[at(to)] = std::max(seconds[at(to)], until);
  };
  for (const FlowRows& flow : flows_) {
    const auto link = static_cast<std::size_t>(flow.inter_node);
    if (flow.out(row) > 0) transfer(flow.from, flow.to, link);
    if (flow.back(row) > 0) transfer(flow.to, flow.from, link);
  }
  return seconds;
}

std::vector<double> FlowTable::seconds_after(std::vector<double> before,
                                             const RowBytes& row) const {
  const std::vector<double> alone = before;
  const auto begins_after = [&](std::int32_t sender, std::int32_t receiver) {
    before[at(receiver)] = std::max(before[at(receiver)], alone[at(sender)]);
  };
  for (const FlowRows& flow : flows_) {
    if (flow.out(row) > 0) begins_after(flow.from, flow.to);
    if (flow.back(row) > 0) begins_after(flow.to, flow.from);
  }
  const std::vector<double> then = seconds(row);
  for (std::size_t worker = 0; worker < then.size(); ++worker) before[worker] += then[worker];
  return before;
}

double FlowTable::busiest_port_seconds(const RowBytes& row) const {
  double busiest = 0;
  for (const Ports& worker : ports(row)) {
    for (const double seconds : {worker.out[0], worker.out[1], worker.in[0], worker.in[1]}) {
      busiest = std::max(busiest, seconds);
    }
  }
  return busiest;
}

std::vector<Sending> FlowTable::outward(const RowBytes& row) const {
  std::vector<Sending> outward;
  for (const FlowRows& flow : flows_) {
    if (flow.out(row) > 0) outward.push_back({flow.from, flow.to});
  }
  return outward;
}

LinkBytes FlowTable::bytes(const RowBytes& row) const {
  LinkBytes bytes;
  for (const FlowRows& flow : flows_) {
    (flow.inter_node ? bytes.inter_node : bytes.nvlink) += flow.out(row) + flow.back(row);
  }
  return bytes;
}

}  // namespace libra
