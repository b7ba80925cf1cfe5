// What travels between the workers of a pool for one layer, derived from a placement (the paper's
// section 4.3.3).
//
// Rows move in strided copies: `rows` consecutive rows of the sender, for the heads of one shard,
// to consecutive rows of the receiver's arena. In chunk m only the m-th part of those heads moves.
//
//   q_moves    Q of a moved tile, home -> destination; O comes back the same way
//   kv_moves   fragments of a KV group, home -> destination; dK and dV come back the same way
//   kv_copies  fragments of a fetched group that the destination holds itself: no traffic, copied
//
// Per (KV group, destination) there is one fetch, whatever the number of tiles that use it. Its
// keys lie in consecutive arena rows from token 0 on, so attention reads them as one tensor.
//
// With PlanOptions::node_fetch, what several destinations of one node need of a group and no worker
// of the node holds crosses once, in round 0, each stretch to one of them: its relay (relays.h).
// The others get it out of its arena in round 1. Gradients go the same way back: to the relay,
// which adds them to its own, then home.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/home_layout.h"
#include "libra/plan/placement.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"

namespace libra {

/// Keys and values [0, tokens) of one sample and KV shard, assembled at one destination.
struct KvFetch {
  std::int32_t destination = 0;
  std::int32_t kv_shard = 0;
  std::int32_t sample = 0;
  std::int64_t tokens = 0;
  std::int64_t arena_row = 0;  ///< of token 0, in the destination's KV arena
  friend bool operator==(const KvFetch&, const KvFetch&) = default;
};

/// A block of rows on its way. For kv_copies from == to.
struct RowMove {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::int32_t shard = 0;  ///< head shard (q_moves) or KV shard (kv_moves, kv_copies)
  std::int32_t round = 0;  ///< 0: out of the home's own rows; 1 (kv_moves): out of a relay's arena
  std::int64_t from_row = 0;  ///< in the sender's local order; in round 1 in its KV arena
  std::int64_t to_row = 0;    ///< in the receiver's Q or KV arena
  std::int64_t rows = 0;
  friend bool operator==(const RowMove&, const RowMove&) = default;
};

struct ExchangePlan {
  std::vector<std::int64_t>
      tile_arena_row;              ///< by tile: its first row in the Q arena; -1 if it stays home
  std::vector<KvFetch> fetches;    ///< by (destination, KV shard, sample)
  std::vector<RowMove> q_moves;    ///< by (to, from, shard, row)
  std::vector<RowMove> kv_moves;   ///< by (to, KV shard, sample, token); neighbours merged
  std::vector<RowMove> kv_copies;  ///< likewise
  std::vector<std::int64_t> q_arena_rows;   ///< by worker
  std::vector<std::int64_t> kv_arena_rows;  ///< by worker

  friend bool operator==(const ExchangePlan&, const ExchangePlan&) = default;
};

/// O(n log n) in the pieces of tiles that are not local to where they are computed.
ExchangePlan plan_exchange(const PlanOptions& options, const HomeLayout& layout,
                           const Tiling& tiling, const Placement& placement);

/// Whether any keys go through a relay. O(KV moves).
bool has_relays(const ExchangePlan& exchange);

/// The fetch that serves `sample` and `kv_shard` at `destination`; nullptr if there is none. O(log
/// fetches).
const KvFetch* find_fetch(const ExchangePlan& exchange, std::int32_t destination,
                          std::int32_t kv_shard, std::int32_t sample);

}  // namespace libra
