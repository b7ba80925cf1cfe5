#include "libra/plan/relays.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "libra/base/index.h"

namespace libra {
namespace {

class RelayChooser {
 public:
  RelayChooser(const PlanOptions& options, const HomeLayout& layout, const KvGroups& groups,
               const std::vector<KvFetch>& fetches)
      : options_(options),
        layout_(layout),
        groups_(groups),
        fetches_(fetches),
        relays_(fetches.size()),
        received_(at(layout.workers()), 0) {
    std::iota(relays_.begin(), relays_.end(), 0);
  }

  std::vector<std::int32_t> run() {
    for (std::size_t first = 0; first < fetches_.size();) {
      const std::int32_t node = options_.node_of(fetches_[first].destination);
      by_group_.clear();
      std::size_t next = first;
      for (; next < fetches_.size() && options_.node_of(fetches_[next].destination) == node;
           ++next) {
        by_group_.emplace_back(group_of(fetches_[next]), static_cast<std::int32_t>(next));
      }
      choose_in_node();
      first = next;
    }
    return std::move(relays_);
  }

 private:
  using Entry = std::pair<std::int64_t, std::int32_t>;  // group, fetch

  std::int64_t group_of(const KvFetch& fetch) const {
    return std::int64_t{fetch.sample} * groups_.split().kv_shards + fetch.kv_shard;
  }

  void choose_in_node() {
    std::sort(by_group_.begin(), by_group_.end());
    for (auto first = by_group_.begin(); first != by_group_.end();) {
      const auto next = std::find_if(first, by_group_.end(), [first](const Entry& entry) {
        return entry.first != first->first;
      });
      choose(std::span(first, next));
      first = next;
    }
  }

  void choose(std::span<const Entry> fetches) {
    const auto key = [this](const Entry& entry) {
      const KvFetch& fetch = fetches_[at(entry.second)];
      return std::tuple(-fetch.tokens, received_[at(fetch.destination)], fetch.destination);
    };
    const auto best =
        std::min_element(fetches.begin(), fetches.end(),
                         [&key](const Entry& a, const Entry& b) { return key(a) < key(b); });
    const KvFetch& relay = fetches_[at(best->second)];
    received_[at(relay.destination)] += rows_from_outside(relay);
    for (const Entry& entry : fetches) relays_[at(entry.second)] = best->second;
  }

  std::int64_t rows_from_outside(const KvFetch& fetch) const {
    const std::int32_t head_part = groups_.head_part_of_kv_shard(fetch.kv_shard);
    const std::int32_t node = options_.node_of(fetch.destination);
    std::int64_t rows = 0;
    for (const Fragment& fragment : layout_.fragments_of(fetch.sample)) {
      if (fragment.tokens.begin >= fetch.tokens) break;
      if (options_.node_of(fragment.part * layout_.tp + head_part) == node) continue;
      rows += intersect(fragment.tokens, {0, fetch.tokens}).size();
    }
    return rows;
  }

  const PlanOptions& options_;
  const HomeLayout& layout_;
  const KvGroups& groups_;
  const std::vector<KvFetch>& fetches_;
  std::vector<std::int32_t> relays_;
  std::vector<std::int64_t> received_;  // by worker: rows from other nodes
  std::vector<Entry> by_group_;         // of one node
};

}  // namespace

std::vector<std::int32_t> choose_relays(const PlanOptions& options, const HomeLayout& layout,
                                        const KvGroups& groups,
                                        const std::vector<KvFetch>& fetches) {
  if (options.node_fetch) return RelayChooser(options, layout, groups, fetches).run();
  std::vector<std::int32_t> each_for_itself(fetches.size());
  std::iota(each_for_itself.begin(), each_for_itself.end(), 0);
  return each_for_itself;
}

}  // namespace libra
