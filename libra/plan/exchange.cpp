#include "libra/plan/exchange.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "libra/base/index.h"
#include "libra/plan/key_needs.h"
#include "libra/plan/kv_groups.h"
#include "libra/plan/relays.h"

namespace libra {
namespace {

auto fetch_key(const KvFetch& fetch) {
  return std::tuple(fetch.destination, fetch.kv_shard, fetch.sample);
}

// Appends a move, or lengthens the last one if the rows continue it at both ends.
void append_move(std::vector<RowMove>& moves, const RowMove& move) {
  if (!moves.empty()) {
    RowMove& last = moves.back();
    if (last.from == move.from && last.to == move.to && last.shard == move.shard &&
        last.round == move.round && last.from_row + last.rows == move.from_row &&
        last.to_row + last.rows == move.to_row) {
      last.rows += move.rows;
      return;
    }
  }
  moves.push_back(move);
}

class ExchangePlanner {
 public:
  ExchangePlanner(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling,
                  const Placement& placement)
      : options_(options),
        layout_(layout),
        tiling_(tiling),
        placement_(placement),
        groups_(options, layout),
        needs_(groups_, layout, tiling) {
    plan_.tile_arena_row.assign(at(tiling.tiles()), -1);
    plan_.q_arena_rows.assign(at(layout.workers()), 0);
    plan_.kv_arena_rows.assign(at(layout.workers()), 0);
  }

  ExchangePlan run() {
    plan_queries();
    collect_fetches();
    assign_arena_rows();
    reserve_moves();
    const Relays relays = choose_relays(options_, layout_, groups_, plan_.fetches);
    for (std::size_t i = 0; i < plan_.fetches.size(); ++i) plan_fetch(i, relays);
    return std::move(plan_);
  }

 private:
  // Moved tiles ordered so that rows which are neighbours at home become neighbours in the arena.
  std::vector<std::int32_t> moved_tiles() const {
    std::vector<std::int32_t> moved;
    for (std::int32_t tile = 0; tile < tiling_.tiles(); ++tile) {
      if (placement_.destination[at(tile)] != tiling_.home_of(tile)) moved.push_back(tile);
    }
    const auto key = [this](std::int32_t tile) {
      return std::tuple(placement_.destination[at(tile)], tiling_.home_of(tile),
                        tiling_.shard_of(tile), tile);
    };
    std::sort(moved.begin(), moved.end(),
              [&key](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
    return moved;
  }

  void plan_queries() {
    for (const std::int32_t tile : moved_tiles()) {
      const std::int32_t to = placement_.destination[at(tile)];
      std::int64_t& arena_rows = plan_.q_arena_rows[at(to)];
      plan_.tile_arena_row[at(tile)] = arena_rows;
      for (const Piece& piece : tiling_.pieces_of(tiling_.block_of(tile))) {
        append_move(plan_.q_moves, {tiling_.home_of(tile), to, tiling_.shard_of(tile), 0, piece.row,
                                    arena_rows, piece.queries.size()});
        arena_rows += piece.queries.size();
      }
    }
  }

  // Tiles by where they are computed, then in the order of their keys: needs arrive nearly sorted.
  std::vector<std::int32_t> tiles_by_destination() const {
    std::vector<std::int32_t> tiles(at(tiling_.tiles()));
    std::iota(tiles.begin(), tiles.end(), 0);
    const auto key = [this](std::int32_t tile) {
      return std::tuple(placement_.destination[at(tile)], tiling_.shard_of(tile), tile);
    };
    std::sort(tiles.begin(), tiles.end(),
              [&key](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
    return tiles;
  }

  void collect_fetches() {
    for (const std::int32_t tile : tiles_by_destination()) {
      const std::int32_t worker = placement_.destination[at(tile)];
      const std::int32_t shard = tiling_.shard_of(tile);
      for (const KeyNeed& need : needs_.of(tile / tiling_.head_shards)) {
        if (groups_.local(need.sample, need.tokens, shard, worker)) continue;
        add_need({worker, groups_.kv_shard(shard), need.sample, need.tokens, 0});
      }
    }
    if (!std::is_sorted(plan_.fetches.begin(), plan_.fetches.end(), before)) keep_longest();
  }

  void add_need(const KvFetch& need) {
    if (!plan_.fetches.empty() && fetch_key(plan_.fetches.back()) == fetch_key(need)) {
      plan_.fetches.back().tokens = std::max(plan_.fetches.back().tokens, need.tokens);
    } else {
      plan_.fetches.push_back(need);
    }
  }

  static bool before(const KvFetch& a, const KvFetch& b) {
    return std::tuple(fetch_key(a), -a.tokens) < std::tuple(fetch_key(b), -b.tokens);
  }

  // One fetch per (destination, KV shard, sample): as far as any of its tiles needs.
  void keep_longest() {
    std::vector<KvFetch>& fetches = plan_.fetches;
    std::sort(fetches.begin(), fetches.end(), before);
    fetches.erase(std::unique(fetches.begin(), fetches.end(),
                              [](const KvFetch& a, const KvFetch& b) {
                                return fetch_key(a) == fetch_key(b);
                              }),
                  fetches.end());
  }

  // Zigzag homes cut every sample into many fragments: millions of moves, which growing lists would
  // copy again and again.
  void reserve_moves() {
    std::size_t fragments = 0;
    for (const KvFetch& fetch : plan_.fetches)
      fragments += layout_.fragments_of(fetch.sample).size();
    plan_.kv_moves.reserve(fragments);
  }

  // Before any move: those of a relay's node read the relay's rows.
  void assign_arena_rows() {
    for (KvFetch& fetch : plan_.fetches) {
      std::int64_t& arena_rows = plan_.kv_arena_rows[at(fetch.destination)];
      fetch.arena_row = arena_rows;
      arena_rows += fetch.tokens;
    }
  }

  void plan_fetch(std::size_t index, const Relays& relays) {
    const KvFetch& fetch = plan_.fetches[index];
    const std::int32_t to = fetch.destination;
    const std::int32_t head_part = groups_.head_part_of_kv_shard(fetch.kv_shard);
    const auto fragments = layout_.fragments_of(fetch.sample);
    for (std::size_t i = 0; i < fragments.size(); ++i) {
      const Fragment& fragment = fragments[i];
      const std::int64_t first = fragment.tokens.begin;
      const std::int64_t rows = intersect(fragment.tokens, {0, fetch.tokens}).size();
      if (rows == 0) break;
      const std::int32_t home = fragment.part * layout_.tp + head_part;
      const std::int64_t to_row = fetch.arena_row + first;
      if (home == to) {
        append_move(plan_.kv_copies, {to, to, fetch.kv_shard, 0, fragment.row, to_row, rows});
        continue;
      }
      RowMove move{home, to, fetch.kv_shard, 0, fragment.row, to_row, rows};
      if (options_.node_of(home) != options_.node_of(to)) {
        const KvFetch& relay = plan_.fetches[at(relays.of(index, i))];
        if (relay.destination != to) {
          move.from = relay.destination;
          move.round = 1;
          move.from_row = relay.arena_row + first;
        }
      }
      append_move(plan_.kv_moves, move);
    }
  }

  const PlanOptions& options_;
  const HomeLayout& layout_;
  const Tiling& tiling_;
  const Placement& placement_;
  KvGroups groups_;
  KeyNeeds needs_;
  ExchangePlan plan_;
};

}  // namespace

ExchangePlan plan_exchange(const PlanOptions& options, const HomeLayout& layout,
                           const Tiling& tiling, const Placement& placement) {
  return ExchangePlanner(options, layout, tiling, placement).run();
}

bool has_relays(const ExchangePlan& exchange) {
  return std::any_of(exchange.kv_moves.begin(), exchange.kv_moves.end(),
                     [](const RowMove& move) { return move.round > 0; });
}

const KvFetch* find_fetch(const ExchangePlan& exchange, std::int32_t destination,
                          std::int32_t kv_shard, std::int32_t sample) {
  const auto key = std::tuple(destination, kv_shard, sample);
  const auto found = std::lower_bound(
      exchange.fetches.begin(), exchange.fetches.end(), key,
      [](const KvFetch& fetch, const auto& wanted) { return fetch_key(fetch) < wanted; });
  return found != exchange.fetches.end() && fetch_key(*found) == key ? &*found : nullptr;
}

}  // namespace libra
