#include <algorithm>
#include <map>
#include <tuple>

#include "libra/base/index.h"
#include "libra/plan/plan_checks.h"

namespace libra {
namespace {

// Rows of a fetch that no worker of its destination's node is the home of.
std::int64_t rows_from_outside(const PoolPlan& plan, const TokenHomes& homes,
                               const KvFetch& fetch) {
  const PoolSample& sample = plan.layout.samples[at(fetch.sample)];
  const std::int32_t node = plan.options.node_of(fetch.destination);
  std::int64_t outside = 0;
  for (std::int64_t token = 0; token < fetch.tokens;) {
    const TokenHomes::Place home = homes.find(sample.replica, sample.begin + token);
    const std::int64_t rows = std::min(home.left, fetch.tokens - token);
    if (plan.options.node_of(home_worker(plan, home, fetch.kv_shard)) != node) outside += rows;
    token += rows;
  }
  return outside;
}

}  // namespace

std::int32_t home_worker(const PoolPlan& plan, const TokenHomes::Place& home,
                         std::int32_t kv_shard) {
  const PlanOptions& options = plan.options;
  const std::int32_t heads = plan.heads().kv_shard_heads;
  return home.part * options.tp + kv_shard * heads / (options.shape.kv_heads / options.tp);
}

std::vector<std::size_t> expected_relays(const PoolPlan& plan, const TokenHomes& homes) {
  const std::vector<KvFetch>& fetches = plan.exchange.fetches;
  // The fetches of every node and KV group, in the order in which relays are chosen.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    const KvFetch& fetch = fetches[i];
    groups[{plan.options.node_of(fetch.destination), fetch.sample, fetch.kv_shard}].push_back(i);
  }
  std::vector<std::size_t> relays(fetches.size());
  std::vector<std::int64_t> received(at(plan.workers()), 0);
  for (const auto& [group, members] : groups) {
    std::size_t relay = members.front();
    for (const std::size_t i : members) {
      if (!plan.options.node_fetch) relays[i] = i;
      const auto rank = [&](const KvFetch& fetch) {
        return std::tuple(-fetch.tokens, received[at(fetch.destination)], fetch.destination);
      };
      if (rank(fetches[i]) < rank(fetches[relay])) relay = i;
    }
    if (!plan.options.node_fetch) continue;
    received[at(fetches[relay].destination)] += rows_from_outside(plan, homes, fetches[relay]);
    for (const std::size_t i : members) relays[i] = relay;
  }
  return relays;
}

}  // namespace libra
