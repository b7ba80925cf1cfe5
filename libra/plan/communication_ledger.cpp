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
      first_fetched_(at(groups_.count()), -1),
      incremental_(at(layout.workers())) {
  fetched_.reserve(at(tiling.tiles()) * 2);
}

const std::vector<std::int64_t>& CommunicationLedger::incremental(std::int32_t tile) {
  const std::int32_t shard = tiling_.shard_of(tile);
  const std::int64_t qo_bytes = tiling_.block_of(tile).tokens * qo_bytes_;
  std::int64_t keys = 0;
  std::int64_t only_at_home = 0;
  for (const KeyNeed& need : needs_of(tile)) {
    keys += need.tokens;
    if (only_here(need)) only_at_home += need.tokens;
  }
  std::fill(incremental_.begin(), incremental_.end(), qo_bytes + keys * kv_bytes_);
  incremental_[at(tiling_.home_of(tile))] -= qo_bytes + only_at_home * kv_bytes_;
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
  for (std::int32_t i = first_fetched_[at(group)]; i >= 0; i = fetched_[at(i)].next) {
    const Fetched& entry = fetched_[at(i)];
    const std::int64_t tokens = std::min(entry.tokens, need.tokens);
    incremental_[at(entry.worker)] -=
        (tokens - resident(need.sample, tokens, shard, entry.worker)) * kv_bytes_;
  }
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
    std::int32_t& first = first_fetched_[at(groups_.index(need.sample, shard))];
    std::int32_t i = first;
    while (i >= 0 && fetched_[at(i)].worker != worker) i = fetched_[at(i)].next;
    if (i >= 0) {
      fetched_[at(i)].tokens = std::max(fetched_[at(i)].tokens, need.tokens);
    } else {
      fetched_.push_back({worker, first, need.tokens});
      first = static_cast<std::int32_t>(fetched_.size()) - 1;
    }
  }
}

}  // namespace libra
