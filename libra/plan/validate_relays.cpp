#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "libra/base/index.h"
#include "libra/plan/plan_checks.h"

namespace libra {
namespace {

// Keys [begin, end) of a sample that one worker of another node holds.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Of the first `tokens` keys of the fetch's sample, the last first.
std::vector<Stretch> stretches_outside(const PoolPlan& plan, const TokenHomes& homes,
                                       const KvFetch& fetch, std::int64_t tokens) {
  const PoolSample& sample = plan.layout.samples[at(fetch.sample)];
  const std::int32_t node = plan.options.node_of(fetch.destination);
  std::vector<Stretch> outside;
  for (std::int64_t token = 0; token < tokens;) {
    const TokenHomes::Place home = homes.find(sample.replica, sample.begin + token);
    const std::int64_t end = std::min(token + home.left, tokens);
    if (plan.options.node_of(home_worker(plan, home, fetch.kv_shard)) != node) {
      outside.push_back({token, end});
    }
    token = end;
  }
  std::reverse(outside.begin(), outside.end());
  return outside;
}

class RelayOrder {
 public:
  RelayOrder(const PoolPlan& plan, const TokenHomes& homes)
      : plan_(plan), homes_(homes), received_(at(plan.workers()), 0) {}

  // The fetches of one node and KV group, after those of all groups before it.
  StretchRelays of(const std::vector<std::size_t>& members) {
    std::int64_t longest = 0;
    for (const std::size_t i : members) longest = std::max(longest, fetch(i).tokens);
    const std::vector<Stretch> outside =
        stretches_outside(plan_, homes_, fetch(members.front()), longest);
    std::int64_t rows = 0;
    for (const Stretch& stretch : outside) rows += stretch.end - stretch.begin;
    StretchRelays relays;
    std::size_t relay = members.front();
    std::int64_t left = 0;  // of the relay's even share
    for (const Stretch& stretch : outside) {
      if (left <= 0) {
        relay = least_received(members, stretch.end);
        left = (rows - 1) / std::ssize(members) + 1;
      }
      relays[stretch.begin] = relay;
      received_[at(fetch(relay).destination)] += stretch.end - stretch.begin;
      left -= stretch.end - stretch.begin;
    }
    return relays;
  }

 private:
  const KvFetch& fetch(std::size_t i) const { return plan_.exchange.fetches[i]; }

  std::size_t least_received(const std::vector<std::size_t>& members, std::int64_t end) const {
    std::map<std::pair<std::int64_t, std::int32_t>, std::size_t> ranks;
    for (const std::size_t i : members) {
      const std::int32_t worker = fetch(i).destination;
      if (fetch(i).tokens >= end) ranks[{received_[at(worker)], worker}] = i;
    }
    return ranks.begin()->second;
  }

  const PoolPlan& plan_;
  const TokenHomes& homes_;
  std::vector<std::int64_t> received_;  // by worker: rows from other nodes
};

}  // namespace

std::int32_t home_worker(const PoolPlan& plan, const TokenHomes::Place& home,
                         std::int32_t kv_shard) {
  const PlanOptions& options = plan.options;
  const std::int32_t heads = plan.heads().kv_shard_heads;
  return home.part * options.tp + kv_shard * heads / (options.shape.kv_heads / options.tp);
}

std::vector<std::shared_ptr<const StretchRelays>> expected_relays(const PoolPlan& plan,
                                                                  const TokenHomes& homes) {
  if (!plan.options.node_fetch) return {};
  const std::vector<KvFetch>& fetches = plan.exchange.fetches;
  // The fetches of every node and KV group, in the order in which relays are chosen.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    const KvFetch& fetch = fetches[i];
    groups[{plan.options.node_of(fetch.destination), fetch.sample, fetch.kv_shard}].push_back(i);
  }
  std::vector<std::shared_ptr<const StretchRelays>> relays(fetches.size());
  RelayOrder order(plan, homes);
  for (const auto& [group, members] : groups) {
    const auto of_group = std::make_shared<const StretchRelays>(order.of(members));
    for (const std::size_t i : members) relays[i] = of_group;
  }
  return relays;
}

}  // namespace libra
