// What a complete placement sends, and how that changes if one tile goes elsewhere: what repair and
// search ask about thousands of moves.
//
//   TileTraffic traffic(options, layout, tiling);
//   if (traffic.change(destination, tile, to) < 0) destination[tile] = to;  // fewer bytes
//
// The same rules as CommunicationLedger, which grows a placement tile by tile and answers for all
// workers at once; here any tile may move at any time. A KV group costs a worker the longest prefix
// that its tiles need there, less what it holds itself. Bytes between nodes count
// 1 + PlanOptions::inter_node_weight times; with PlanOptions::node_fetch those of a KV group are
// the longest prefix that any tile of the node needs, less what the node holds.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "libra/plan/key_needs.h"

namespace libra {

class TileTraffic {
 public:
  TileTraffic(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling);

  /// Weighted bytes more, below 0 fewer, if `tile` were computed at `to`; where that is above
  /// `most`, anything above `most`. O(tiles that need the keys of its samples).
  std::int64_t change(const std::vector<std::int32_t>& destination, std::int32_t tile,
                      std::int32_t to,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;

  /// No change that moves the tile saves more than this.
  std::int64_t most_saved(std::int32_t tile) const {
    return tile_homes_[static_cast<std::size_t>(tile)].most_saved;
  }

  /// Bytes of a whole block's queries and results: the scale of a change.
  std::int64_t block_bytes() const { return block_bytes_; }

  /// Unweighted: queries, results and the keys that no other tile needs, where the tile is away.
  std::int64_t bytes_away(std::int32_t tile) const {
    return tile_homes_[static_cast<std::size_t>(tile)].bytes_away;
  }
  std::int64_t key_token_bytes() const { return kv_bytes_; }  ///< K and V of a group's token

  /// Samples whose keys the tile shares with others.
  std::int32_t shared_samples(std::int32_t tile) const {
    return static_cast<std::int32_t>(shared_needs(tile).size());
  }

  struct User {
    std::int32_t tile = 0;
    std::int32_t tokens = 0;  ///< keys [0, tokens) of the group; pool_limits.h bounds them
  };
  /// The tiles that need keys of the k-th shared sample of `tile`, itself among them.
  std::span<const User> companions(std::int32_t tile, std::int32_t k) const {
    return users_of(shared_needs(tile)[static_cast<std::size_t>(k)].group);
  }

  /// KV groups, and the tiles that need one's keys: longest prefix first, none of those that need
  /// a sample alone.
  std::int32_t groups() const { return groups_.count(); }
  std::span<const User> users_of(std::int32_t group) const;

 private:
  struct GroupNeed {
    std::int32_t group = 0;
    std::int64_t tokens = 0;
  };
  /// What is asked for again and again, without a division.
  struct TileHome {
    std::int32_t worker = 0;
    std::int64_t bytes_away = 0;  ///< queries, results and keys that no other tile needs
    std::int64_t most_saved = 0;
  };
  struct GroupHome {
    std::int32_t sample = 0;
    std::int32_t head_part = 0;
    std::int32_t first_worker = 0;  ///< of its sequence
  };
  using Workers = Range<std::int32_t, struct WorkerTag>;

  void list_homes();
  void list_needs(const KeyNeeds& needs);
  void list_users();
  std::span<const GroupNeed> shared_needs(std::int32_t tile) const;
  Workers node_of(std::int32_t worker) const { return nodes_[static_cast<std::size_t>(worker)]; }
  std::int64_t query_bytes(std::int32_t tile, std::int32_t worker) const;
  std::int64_t key_bytes(const std::vector<std::int32_t>& destination, std::int32_t tile,
                         const GroupNeed& need, std::int32_t worker) const;
  std::int64_t longest(const std::vector<std::int32_t>& destination, std::int32_t group,
                       Workers where, std::int32_t except) const;
  std::int64_t missing(std::int32_t group, TokenRange keys, Workers where) const;
  std::int64_t resident(std::int32_t group, std::int64_t tokens, Workers where) const;

  const HomeLayout& layout_;
  const Tiling& tiling_;
  KvGroups groups_;
  std::int64_t inter_node_weight_;
  bool node_fetch_;
  std::int64_t qo_bytes_;  // per query token of a tile
  std::int64_t kv_bytes_;  // per key token of a KV group
  std::int64_t block_bytes_;
  std::vector<GroupNeed> needs_;          // of tiles, but for samples that no other tile needs
  std::vector<std::int32_t> first_need_;  // by tile, and one past the last
  std::vector<Workers> nodes_;            // by worker
  std::vector<TileHome> tile_homes_;
  std::vector<GroupHome> group_homes_;
  std::vector<User> users_;               // by group, longest first
  std::vector<std::int32_t> first_user_;  // by group, and one past the last
};

}  // namespace libra
