// What it would cost, in bytes, to compute a tile at each worker, given what has been placed so
// far.
//
// The incremental communication of a tile at worker w (Algorithm 2): Q and O if w is not its home,
// and K and V of every key it needs that w neither holds nor already fetches.
//
//   CommunicationLedger ledger(options, layout, tiling);
//   const std::vector<std::int64_t>& bytes = ledger.incremental(tile);  // by worker
//   ledger.commit(tile, w);  // w now fetches what the tile needs
//
// With PlanOptions::node_fetch it also says which of these bytes cross to another node: Q and O,
// and K and V of every key that no worker of the node holds or already fetches.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/key_needs.h"

namespace libra {

class CommunicationLedger {
 public:
  CommunicationLedger(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling);

  /// Bytes by worker; valid until the next call. O(workers + what is known about the tile's
  /// groups).
  const std::vector<std::int64_t>& incremental(std::int32_t tile);

  /// Bytes by node that cross to it; empty without node fetch. Likewise.
  const std::vector<std::int64_t>& crossing(std::int32_t tile);

  void commit(std::int32_t tile, std::int32_t worker);

 private:
  // Who fetches a group, workers or nodes, and up to which token: one list per group, in one array.
  struct Fetched {
    std::int32_t who = 0;
    std::int32_t next = -1;
    std::int64_t tokens = 0;
  };
  struct FetchedGroups {
    std::vector<std::int32_t> first;  // by group
    std::vector<Fetched> entries;
    void add(std::int32_t group, std::int32_t who, std::int64_t tokens);
  };

  // Keys that a tile needs, and those of them whose sample lies in its block alone.
  struct KeyTokens {
    std::int64_t all = 0;
    std::int64_t only_at_home = 0;
  };
  KeyTokens key_tokens(std::int32_t tile) const;

  std::span<const KeyNeed> needs_of(std::int32_t tile) const {
    return needs_.of(tile / tiling_.head_shards);
  }
  void credit_resident(const KeyNeed& need, std::int32_t shard);
  void credit_fetched(const KeyNeed& need, std::int32_t shard);
  void credit_node(const KeyNeed& need, std::int32_t shard);
  std::int64_t resident(std::int32_t sample, std::int64_t needed, std::int32_t shard,
                        std::int32_t worker) const;
  std::int64_t resident_in_node(std::int32_t sample, std::int64_t needed, std::int32_t shard,
                                std::int32_t node) const;
  bool only_here(const KeyNeed& need) const { return need.only_here && !shards_share_kv_; }

  const HomeLayout& layout_;
  const Tiling& tiling_;
  KvGroups groups_;
  KeyNeeds needs_;
  std::int64_t qo_bytes_;  // per query token of a tile
  std::int64_t kv_bytes_;  // per key token of a KV group
  bool shards_share_kv_;
  FetchedGroups fetched_;                  // by workers
  std::vector<std::int64_t> incremental_;  // by worker
  // With node fetch:
  std::vector<std::int32_t> nodes_;     // by worker
  FetchedGroups crossed_;               // by nodes
  std::vector<std::int64_t> crossing_;  // by node
};

}  // namespace libra
