#include "libra/plan/relays.h"

#include <algorithm>
#include <span>
#include <utility>

#include "libra/base/index.h"

namespace libra {

class RelayChooser {
 public:
  RelayChooser(const PlanOptions& options, const HomeLayout& layout, const KvGroups& groups,
               const std::vector<KvFetch>& fetches)
      : options_(options),
        layout_(layout),
        groups_(groups),
        fetches_(fetches),
        relays_(fetches.size()),
        received_(at(layout.workers()), 0) {}

  Relays run() {
    for (std::size_t first = 0; first < fetches_.size();) {
      const std::int32_t node = options_.node_of(fetches_[first].destination);
      by_group_.clear();
      std::size_t next = first;
      for (; next < fetches_.size() && options_.node_of(fetches_[next].destination) == node;
           ++next) {
        by_group_.emplace_back(group_of(fetches_[next]), static_cast<std::int32_t>(next));
      }
      choose_in_node(node);
      first = next;
    }
    return std::move(relays_);
  }

 private:
  using Entry = std::pair<std::int64_t, std::int32_t>;  // group, fetch

  // Of a fragment on another node, what the node needs.
  struct Stretch {
    std::size_t fragment = 0;
    std::int64_t end = 0;
    std::int64_t rows = 0;
  };

  std::int64_t group_of(const KvFetch& fetch) const {
    return std::int64_t{fetch.sample} * groups_.split().kv_shards + fetch.kv_shard;
  }

  const KvFetch& fetch_of(const Entry& entry) const { return fetches_[at(entry.second)]; }

  void choose_in_node(std::int32_t node) {
    std::sort(by_group_.begin(), by_group_.end());
    for (auto first = by_group_.begin(); first != by_group_.end();) {
      const auto next = std::find_if(first, by_group_.end(), [first](const Entry& entry) {
        return entry.first != first->first;
      });
      choose(std::span(first, next), node);
      first = next;
    }
  }

  // From the last stretch on: whoever needs it needs all before it.
  void choose(std::span<const Entry> entries, std::int32_t node) {
    const std::int64_t rows = list_stretches(entries, node);
    if (entries.size() == 1) {
      received_[at(fetch_of(entries.front()).destination)] += rows;
      return;
    }
    std::int32_t* const relay = add_group(entries);
    const std::int64_t count = std::ssize(entries);
    const std::int64_t share = (rows + count - 1) / count;
    std::int32_t current = -1;
    std::int64_t taken = share;
    for (const Stretch& stretch : stretches_) {
      if (taken >= share) {
        current = least_received(entries, stretch.end);
        taken = 0;
      }
      relay[stretch.fragment] = current;
      taken += stretch.rows;
      received_[at(fetches_[at(current)].destination)] += stretch.rows;
    }
  }

  // The last one first. Gives their rows.
  std::int64_t list_stretches(std::span<const Entry> entries, std::int32_t node) {
    std::int64_t needed = 0;
    for (const Entry& entry : entries) needed = std::max(needed, fetch_of(entry).tokens);
    const KvFetch& any = fetch_of(entries.front());
    const std::int32_t head_part = groups_.head_part_of_kv_shard(any.kv_shard);
    const auto fragments = layout_.fragments_of(any.sample);
    stretches_.clear();
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < fragments.size() && fragments[i].tokens.begin < needed; ++i) {
      if (options_.node_of(fragments[i].part * layout_.tp + head_part) == node) continue;
      const TokenRange tokens = intersect(fragments[i].tokens, {0, needed});
      stretches_.push_back({i, tokens.end, tokens.size()});
      rows += tokens.size();
    }
    std::reverse(stretches_.begin(), stretches_.end());
    return rows;
  }

  std::int32_t* add_group(std::span<const Entry> entries) {
    const std::size_t first = relays_.relay_.size();
    relays_.relay_.resize(first + layout_.fragments_of(fetch_of(entries.front()).sample).size());
    for (const Entry& entry : entries) {
      relays_.first_[at(entry.second)] = static_cast<std::int64_t>(first);
    }
    return relays_.relay_.data() + first;
  }

  std::int32_t least_received(std::span<const Entry> entries, std::int64_t needed) const {
    std::int32_t best = -1;
    for (const Entry& entry : entries) {
      if (fetch_of(entry).tokens < needed) continue;
      if (best < 0 || rank(entry.second) < rank(best)) best = entry.second;
    }
    return best;
  }

  std::pair<std::int64_t, std::int32_t> rank(std::int32_t fetch) const {
    const std::int32_t destination = fetches_[at(fetch)].destination;
    return {received_[at(destination)], destination};
  }

  const PlanOptions& options_;
  const HomeLayout& layout_;
  const KvGroups& groups_;
  const std::vector<KvFetch>& fetches_;
  Relays relays_;
  std::vector<std::int64_t> received_;  // by worker: rows from other nodes
  std::vector<Entry> by_group_;         // of one node
  std::vector<Stretch> stretches_;      // of one node and group
};

Relays choose_relays(const PlanOptions& options, const HomeLayout& layout, const KvGroups& groups,
                     const std::vector<KvFetch>& fetches) {
  if (!options.node_fetch) return Relays(fetches.size());
  return RelayChooser(options, layout, groups, fetches).run();
}

}  // namespace libra
