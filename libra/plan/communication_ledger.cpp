#include "libra/plan/communication_ledger.h"

#include <algorithm>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"

namespace libra {

CommunicationLedger::CommunicationLedger(const PlanOptions& options, const HomeLayout& layout,
                                         const Tiling& tiling)
    : layout_(layout),
      tiling_(tiling),
      groups_(options, layout),
      needs_(groups_, layout, tiling),
      qo_bytes_(q_token_bytes(options.shape, groups_.split().shard_heads, options.storage) +
                o_token_bytes(options.shape, groups_.split().shard_heads, options.storage)),
      kv_bytes_(kv_token_bytes(options.shape, groups_.split().kv_shard_heads, options.storage)),
      shards_share_kv_(groups_.split().kv_shards < options.head_shards),
      fetched_{std::vector<std::int32_t>(at(groups_.count()), -1), {}},
      incremental_(at(layout.workers())) {
  fetched_.entries.reserve(at(tiling.tiles()) * 2);
  if (!options.node_fetch) return;
  crossed_ = fetched_;
  nodes_.reserve(at(layout.workers()));
  for (std::int32_t worker = 0; worker < layout.workers(); ++worker) {
    nodes_.push_back(options.node_of(worker));
  }
  crossing_.resize(at(nodes_.back() + 1));
}

void CommunicationLedger::FetchedGroups::add(std::int32_t group, std::int32_t who,
                                             std::int64_t tokens) {
  std::int32_t i = first[at(group)];
  while (i >= 0 && entries[at(i)].who != who) i = entries[at(i)].next;
  if (i >= 0) {
    entries[at(i)].tokens = std::max(entries[at(i)].tokens, tokens);
  } else {
    entries.push_back({who, first[at(group)], tokens});
    first[at(group)] = static_cast<std::int32_t>(entries.size()) - 1;
  }
}

CommunicationLedger::KeyTokens CommunicationLedger::key_tokens(std::int32_t tile) const {
  KeyTokens tokens;
  for (const KeyNeed& need : needs_of(tile)) {
    tokens.all += need.tokens;
    if (only_here(need)) tokens.only_at_home += need.tokens;
  }
  return tokens;
}

const std::vector<std::int64_t>& CommunicationLedger::incremental(std::int32_t tile) {
  const std::int32_t shard = tiling_.shard_of(tile);
  const std::int64_t qo_bytes = tiling_.block_of(tile).tokens * qo_bytes_;
  const KeyTokens keys = key_tokens(tile);
  std::fill(incremental_.begin(), incremental_.end(), qo_bytes + keys.all * kv_bytes_);
  incremental_[at(tiling_.home_of(tile))] -= qo_bytes + keys.only_at_home * kv_bytes_;
  for (const KeyNeed& need : needs_of(tile)) {
    if (only_here(need)) continue;
    credit_resident(need, shard);
    credit_fetched(need, shard);
  }
  return incremental_;
}

void CommunicationLedger::credit_resident(const KeyNeed& need, std::int32_t shard) {
  for (const Fragment& fragment : layout_.fragments_of(need.sample)) {
    if (fragment.tokens.begin >= need.tokens) break;
    const std::int32_t worker = fragment.part * layout_.tp + groups_.head_part(shard);
    incremental_[at(worker)] -= intersect(fragment.tokens, {0, need.tokens}).size() * kv_bytes_;
  }
}

// What a worker fetches may overlap what it holds, which is credited already.
void CommunicationLedger::credit_fetched(const KeyNeed& need, std::int32_t shard) {
  const std::int32_t group = groups_.index(need.sample, shard);
  for (std::int32_t i = fetched_.first[at(group)]; i >= 0; i = fetched_.entries[at(i)].next) {
    const Fetched& entry = fetched_.entries[at(i)];
    const std::int64_t tokens = std::min(entry.tokens, need.tokens);
    incremental_[at(entry.who)] -=
        (tokens - resident(need.sample, tokens, shard, entry.who)) * kv_bytes_;
  }
}

const std::vector<std::int64_t>& CommunicationLedger::crossing(std::int32_t tile) {
  if (crossing_.empty()) return crossing_;
  const std::int64_t qo_bytes = tiling_.block_of(tile).tokens * qo_bytes_;
  const KeyTokens keys = key_tokens(tile);
  std::fill(crossing_.begin(), crossing_.end(), qo_bytes + keys.all * kv_bytes_);
  crossing_[at(nodes_[at(tiling_.home_of(tile))])] -= qo_bytes + keys.only_at_home * kv_bytes_;
  for (const KeyNeed& need : needs_of(tile)) {
    if (!only_here(need)) credit_node(need, tiling_.shard_of(tile));
  }
  return crossing_;
}

void CommunicationLedger::credit_node(const KeyNeed& need, std::int32_t shard) {
  for (const Fragment& fragment : layout_.fragments_of(need.sample)) {
    if (fragment.tokens.begin >= need.tokens) break;
    const std::int32_t worker = fragment.part * layout_.tp + groups_.head_part(shard);
    crossing_[at(nodes_[at(worker)])] -=
        intersect(fragment.tokens, {0, need.tokens}).size() * kv_bytes_;
  }
  const std::int32_t group = groups_.index(need.sample, shard);
  for (std::int32_t i = crossed_.first[at(group)]; i >= 0; i = crossed_.entries[at(i)].next) {
    const Fetched& entry = crossed_.entries[at(i)];
    const std::int64_t tokens = std::min(entry.tokens, need.tokens);
    crossing_[at(entry.who)] -=
        (tokens - resident_in_node(need.sample, tokens, shard, entry.who)) * kv_bytes_;
  }
}

std::int64_t CommunicationLedger::resident_in_node(std::int32_t sample, std::int64_t needed,
                                                   std::int32_t shard, std::int32_t node) const {
  std::int64_t tokens = 0;
  for (const Fragment& fragment : layout_.fragments_of(sample)) {
    if (fragment.tokens.begin >= needed) break;
    const std::int32_t worker = fragment.part * layout_.tp + groups_.head_part(shard);
    if (nodes_[at(worker)] == node) tokens += intersect(fragment.tokens, {0, needed}).size();
  }
  return tokens;
}

std::int64_t CommunicationLedger::resident(std::int32_t sample, std::int64_t needed,
                                           std::int32_t shard, std::int32_t worker) const {
  const std::int32_t replica = worker / layout_.tp / layout_.parts_per_sequence;
  if (replica != layout_.samples[at(sample)].replica) return 0;
  if (worker % layout_.tp != groups_.head_part(shard)) return 0;
  std::int64_t tokens = 0;
  for (const Fragment& fragment : layout_.fragments_of(sample)) {
    if (fragment.tokens.begin >= needed) break;
    if (fragment.part == worker / layout_.tp)
      tokens += intersect(fragment.tokens, {0, needed}).size();
  }
  return tokens;
}

void CommunicationLedger::commit(std::int32_t tile, std::int32_t worker) {
  const std::int32_t shard = tiling_.shard_of(tile);
  for (const KeyNeed& need : needs_of(tile)) {
    if (only_here(need) || groups_.local(need.sample, need.tokens, shard, worker)) continue;
    const std::int32_t group = groups_.index(need.sample, shard);
    fetched_.add(group, worker, need.tokens);
    if (!nodes_.empty()) crossed_.add(group, nodes_[at(worker)], need.tokens);
  }
}

}  // namespace libra
