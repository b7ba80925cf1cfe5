#include "libra/plan/tile_traffic.h"

#include <algorithm>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"

namespace libra {

TileTraffic::TileTraffic(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling)
    : layout_(layout),
      tiling_(tiling),
      groups_(options, layout),
      inter_node_weight_(options.inter_node_weight),
      node_fetch_(options.node_fetch),
      qo_bytes_(q_token_bytes(options.shape, groups_.split().shard_heads, options.storage) +
                o_token_bytes(options.shape, groups_.split().shard_heads, options.storage)),
      kv_bytes_(kv_token_bytes(options.shape, groups_.split().kv_shard_heads, options.storage)),
      block_bytes_(options.block_tokens * qo_bytes_) {
  nodes_.reserve(at(layout.workers()));
  for (std::int32_t worker = 0; worker < layout.workers(); ++worker) {
    const std::int32_t first = worker / options.gpus_per_node * options.gpus_per_node;
    nodes_.push_back({first, first + options.gpus_per_node});
  }
  list_homes();
  list_needs(KeyNeeds(groups_, layout, tiling));
  list_users();
}

void TileTraffic::list_homes() {
  tile_homes_.reserve(at(tiling_.tiles()));
  for (std::int32_t tile = 0; tile < tiling_.tiles(); ++tile) {
    tile_homes_.push_back({tiling_.home_of(tile), tiling_.block_of(tile).tokens * qo_bytes_, 0});
  }
  group_homes_.reserve(at(groups_.count()));
  const std::int32_t cp = layout_.parts_per_sequence * layout_.tp;
  for (std::int32_t group = 0; group < groups_.count(); ++group) {
    const std::int32_t sample = groups_.sample_of(group);
    group_homes_.push_back({sample, groups_.head_part_of_kv_shard(groups_.kv_shard_of_group(group)),
                            layout_.samples[at(sample)].replica * cp});
  }
}

void TileTraffic::list_needs(const KeyNeeds& needs) {
  const bool shards_share_kv = groups_.split().kv_shards < tiling_.head_shards;
  first_need_.reserve(at(tiling_.tiles()) + 1);
  needs_.reserve(at(tiling_.tiles()) * 2);
  for (std::int32_t tile = 0; tile < tiling_.tiles(); ++tile) {
    first_need_.push_back(static_cast<std::int32_t>(needs_.size()));
    TileHome& home = tile_homes_[at(tile)];
    for (const KeyNeed& need : needs.of(tile / tiling_.head_shards)) {
      if (need.only_here && !shards_share_kv) {
        home.bytes_away += need.tokens * kv_bytes_;
      } else {
        needs_.push_back({groups_.index(need.sample, tiling_.shard_of(tile)), need.tokens});
        home.most_saved += need.tokens * kv_bytes_;
      }
    }
    home.most_saved = (home.most_saved + home.bytes_away) * (1 + inter_node_weight_);
  }
  first_need_.push_back(static_cast<std::int32_t>(needs_.size()));
}

void TileTraffic::list_users() {
  first_user_.assign(at(groups_.count()) + 1, 0);
  for (const GroupNeed& need : needs_) ++first_user_[at(need.group) + 1];
  for (std::size_t i = 1; i < first_user_.size(); ++i) first_user_[i] += first_user_[i - 1];
  users_.resize(needs_.size());
  std::vector<std::int32_t> next = first_user_;
  for (std::int32_t tile = 0; tile < tiling_.tiles(); ++tile) {
    for (const GroupNeed& need : shared_needs(tile)) {
      users_[at(next[at(need.group)]++)] = {tile, static_cast<std::int32_t>(need.tokens)};
    }
  }
  for (std::size_t group = 0; group + 1 < first_user_.size(); ++group) {
    std::stable_sort(users_.begin() + first_user_[group], users_.begin() + first_user_[group + 1],
                     [](const User& a, const User& b) { return a.tokens > b.tokens; });
  }
}

std::span<const TileTraffic::GroupNeed> TileTraffic::shared_needs(std::int32_t tile) const {
  const auto first = at(first_need_[at(tile)]);
  return std::span(needs_).subspan(first, at(first_need_[at(tile) + 1]) - first);
}

std::span<const TileTraffic::User> TileTraffic::users_of(std::int32_t group) const {
  const auto first = at(first_user_[at(group)]);
  return std::span(users_).subspan(first, at(first_user_[at(group) + 1]) - first);
}

std::int64_t TileTraffic::query_bytes(std::int32_t tile, std::int32_t worker) const {
  const TileHome& home = tile_homes_[at(tile)];
  if (worker == home.worker) return 0;
  const bool near = node_of(home.worker).contains(worker);
  return near ? home.bytes_away : home.bytes_away * (1 + inter_node_weight_);
}

// Users come longest first: the first one met there decides.
std::int64_t TileTraffic::longest(const std::vector<std::int32_t>& destination, std::int32_t group,
                                  Workers where, std::int32_t except) const {
  for (const User& user : users_of(group)) {
    if (where.contains(destination[at(user.tile)]) && user.tile != except) return user.tokens;
  }
  return 0;
}

std::int64_t TileTraffic::resident(std::int32_t group, std::int64_t tokens, Workers where) const {
  const GroupHome& home = group_homes_[at(group)];
  const std::int32_t cp = layout_.parts_per_sequence * layout_.tp;
  if (where.end <= home.first_worker || where.begin >= home.first_worker + cp) return 0;
  std::int64_t held = 0;
  for (const Fragment& fragment : layout_.fragments_of(home.sample)) {
    if (fragment.tokens.begin >= tokens) break;
    if (!where.contains(fragment.part * layout_.tp + home.head_part)) continue;
    held += intersect(fragment.tokens, {0, tokens}).size();
  }
  return held;
}

std::int64_t TileTraffic::missing(std::int32_t group, TokenRange keys, Workers where) const {
  if (keys.empty()) return 0;
  return keys.size() - resident(group, keys.end, where) + resident(group, keys.begin, where);
}

// What the tile's need adds to those of the other tiles at a worker.
std::int64_t TileTraffic::key_bytes(const std::vector<std::int32_t>& destination, std::int32_t tile,
                                    const GroupNeed& need, std::int32_t worker) const {
  const Workers alone{worker, worker + 1};
  const Workers node = node_of(worker);
  const std::int64_t here = longest(destination, need.group, alone, tile);
  std::int64_t keys = missing(need.group, {here, need.tokens}, alone);
  if (inter_node_weight_ > 0) {
    const std::int64_t crossed = node_fetch_ ? longest(destination, need.group, node, tile) : here;
    keys += missing(need.group, {crossed, need.tokens}, node) * inter_node_weight_;
  }
  return keys * kv_bytes_;
}

std::int64_t TileTraffic::change(const std::vector<std::int32_t>& destination, std::int32_t tile,
                                 std::int32_t to, std::int64_t most) const {
  const std::int32_t from = destination[at(tile)];
  if (from == to) return 0;
  std::int64_t bytes = query_bytes(tile, to) - query_bytes(tile, from);
  for (const GroupNeed& need : shared_needs(tile)) {
    bytes -= key_bytes(destination, tile, need, from);
  }
  for (const GroupNeed& need : shared_needs(tile)) {
    if (bytes > most) break;
    bytes += key_bytes(destination, tile, need, to);
  }
  return bytes;
}

}  // namespace libra
