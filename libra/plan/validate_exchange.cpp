#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "libra/base/index.h"
#include "libra/plan/plan_checks.h"

namespace libra {
namespace {

// Row numbers within these bounds can be added without a thought; no arena has that many rows.
constexpr TokenRange kPossibleRows{0, std::int64_t{1} << 60};

bool possible(const RowMove& move) {
  return kPossibleRows.contains(move.from_row) && kPossibleRows.contains(move.to_row) &&
         kPossibleRows.contains(move.rows);
}

auto place(const RowMove& move) { return std::tie(move.from, move.to, move.shard, move.round); }

// Moves in one canonical form: sorted by where they arrive, neighbours joined. Two lists that move
// the same rows between the same places are equal in this form.
std::vector<RowMove> canonical(std::vector<RowMove> moves) {
  std::sort(moves.begin(), moves.end(), [](const RowMove& a, const RowMove& b) {
    return std::tie(a.to, a.to_row, a.from, a.from_row) <
           std::tie(b.to, b.to_row, b.from, b.from_row);
  });
  std::vector<RowMove> joined;
  for (const RowMove& move : moves) {
    if (move.rows == 0) continue;
    RowMove* last = joined.empty() ? nullptr : &joined.back();
    if (last != nullptr && place(*last) == place(move) &&
        last->to_row + last->rows == move.to_row && last->from_row + last->rows == move.from_row) {
      last->rows += move.rows;
    } else {
      joined.push_back(move);
    }
  }
  return joined;
}

std::string to_string(const RowMove& move) {
  return fmt::format("{} rows of shard {} from worker {} row {} to worker {} row {} in round {}",
                     move.rows, move.shard, move.from, move.from_row, move.to, move.to_row,
                     move.round);
}

void compare_moves(const std::vector<RowMove>& expected, const std::vector<RowMove>& found,
                   const char* rule, Violations& violations) {
  const auto odd = std::find_if_not(found.begin(), found.end(), possible);
  if (odd != found.end()) {
    violations.push_back({rule, fmt::format("impossible move: {}", to_string(*odd))});
    return;
  }
  const std::vector<RowMove> want = canonical(expected);
  const std::vector<RowMove> have = canonical(found);
  const auto [w, h] = std::mismatch(want.begin(), want.end(), have.begin(), have.end());
  if (w == want.end() && h == have.end()) return;
  violations.push_back(
      {rule, fmt::format("expected {}, found {}", w == want.end() ? "nothing more" : to_string(*w),
                         h == have.end() ? "nothing more" : to_string(*h))});
}

// Rows that are claimed in the arenas: do any overlap, do they end where the arena does?
class RowClaims {
 public:
  explicit RowClaims(std::int32_t workers) : end_(at(workers), 0) {}

  void claim(std::int32_t worker, std::int64_t begin, std::int64_t rows) {
    claims_.emplace_back(worker, begin, begin + rows);
    end_[at(worker)] = std::max(end_[at(worker)], begin + rows);
  }

  void check(const std::vector<std::int64_t>& arena_rows, const char* rule,
             Violations& violations) {
    if (arena_rows != end_)
      violations.push_back({rule, "arenas do not end where the last of their rows does"});
    std::sort(claims_.begin(), claims_.end());
    for (std::size_t i = 1; i < claims_.size(); ++i) {
      const auto& [worker, begin, end] = claims_[i];
      if (std::get<0>(claims_[i - 1]) == worker && std::get<2>(claims_[i - 1]) > begin) {
        violations.push_back(
            {rule, fmt::format("arena row {} of worker {} is used twice", begin, worker)});
      }
    }
  }

 private:
  std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t>> claims_;
  std::vector<std::int64_t> end_;  // by worker
};

class ExchangeChecker {
 public:
  ExchangeChecker(const PoolPlan& plan, const TokenHomes& homes, Violations& violations)
      : plan_(plan), homes_(homes), heads_(plan.heads()), violations_(violations) {}

  void run() {
    check_queries();
    if (!fetches_exist()) return;
    check_keys();
    check_fetches();
  }

 private:
  void violate(const char* rule, std::string detail) {
    violations_.push_back({rule, std::move(detail)});
  }

  void check_queries() {
    const ExchangePlan& exchange = plan_.exchange;
    if (exchange.tile_arena_row.size() != at(plan_.tiling.tiles())) {
      violate("queries", fmt::format("{} arena rows for {} tiles", exchange.tile_arena_row.size(),
                                     plan_.tiling.tiles()));
      return;
    }
    std::vector<RowMove> expected;
    RowClaims claims(plan_.workers());
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile)
      expect_queries(tile, expected, claims);
    claims.check(exchange.q_arena_rows, "queries", violations_);
    compare_moves(expected, exchange.q_moves, "queries", violations_);
  }

  void expect_queries(std::int32_t tile, std::vector<RowMove>& expected, RowClaims& claims) {
    const std::int32_t home = plan_.tiling.home_of(tile);
    const std::int32_t to = plan_.placement.destination[at(tile)];
    std::int64_t row = plan_.exchange.tile_arena_row[at(tile)];
    if (to == home) {
      if (row != -1)
        violate("queries", fmt::format("tile {}: at home, with arena row {}", tile, row));
      return;
    }
    if (!kPossibleRows.contains(row)) {
      violate("queries", fmt::format("tile {}: moved, with arena row {}", tile, row));
      return;
    }
    const Block& block = plan_.tiling.block_of(tile);
    claims.claim(to, row, block.tokens);
    for (const Piece& piece : plan_.tiling.pieces_of(block)) {
      expected.push_back(
          {home, to, plan_.tiling.shard_of(tile), 0, piece.row, row, piece.queries.size()});
      row += piece.queries.size();
    }
  }

  bool fetches_exist() {
    const auto samples = static_cast<std::int32_t>(plan_.layout.samples.size());
    for (const KvFetch& fetch : plan_.exchange.fetches) {
      if (fetch.destination >= 0 && fetch.destination < plan_.workers() && fetch.sample >= 0 &&
          fetch.sample < samples && fetch.kv_shard >= 0 && fetch.kv_shard < heads_.kv_shards &&
          kPossibleRows.contains(fetch.arena_row) && fetch.tokens > 0 &&
          fetch.tokens <= plan_.layout.samples[at(fetch.sample)].tokens)
        continue;
      violate("fetches",
              fmt::format("fetch of {} keys of sample {}, KV shard {}, to row {} of worker {} does "
                          "not exist",
                          fetch.tokens, fetch.sample, fetch.kv_shard, fetch.arena_row,
                          fetch.destination));
      return false;
    }
    return true;
  }

  std::int64_t needed(const Piece& piece) const {
    return plan_.options.fetch == Fetch::kWhole ? plan_.layout.samples[at(piece.sample)].tokens
                                                : piece.queries.end;
  }

  // Whether the worker's own rows hold keys [0, tokens) of the sample one after the other.
  bool local(std::int32_t sample, std::int64_t tokens, std::int32_t kv_shard,
             std::int32_t worker) const {
    const PoolSample& s = plan_.layout.samples[at(sample)];
    const TokenHomes::Place home = homes_.find(s.replica, s.begin);
    return home.left >= tokens && home_worker(plan_, home, kv_shard) == worker;
  }

  using Group = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // worker, KV shard, sample

  void check_keys() {
    std::map<Group, std::int64_t> longest;
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile) {
      const std::int32_t worker = plan_.placement.destination[at(tile)];
      const std::int32_t kv_shard = heads_.kv_shard_of(plan_.tiling.shard_of(tile));
      for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
        if (local(piece.sample, needed(piece), kv_shard, worker)) continue;
        std::int64_t& tokens = longest[{worker, kv_shard, piece.sample}];
        tokens = std::max(tokens, needed(piece));
      }
    }
    for (const auto& [group, tokens] : longest) compare_fetch(group, tokens);
    if (plan_.exchange.fetches.size() != longest.size()) {
      violate("fetches", fmt::format("{} fetches, {} of them needed", plan_.exchange.fetches.size(),
                                     longest.size()));
    }
  }

  void compare_fetch(const Group& group, std::int64_t tokens) {
    const auto& [worker, kv_shard, sample] = group;
    const KvFetch* fetch = find_fetch(plan_.exchange, worker, kv_shard, sample);
    const std::int64_t found = fetch == nullptr ? 0 : fetch->tokens;
    if (found == tokens) return;
    violate(found < tokens ? "keys" : "fetches",
            fmt::format("worker {} needs keys [0, {}) of sample {}, KV shard {}, and fetches {}",
                        worker, tokens, sample, kv_shard, found));
  }

  void check_fetches() {
    std::vector<RowMove> moves;
    std::vector<RowMove> copies;
    RowClaims claims(plan_.workers());
    const std::vector<KvFetch>& fetches = plan_.exchange.fetches;
    const auto relays = expected_relays(plan_, homes_);
    for (std::size_t i = 0; i < fetches.size(); ++i) {
      claims.claim(fetches[i].destination, fetches[i].arena_row, fetches[i].tokens);
      expect_fetch(fetches[i], relays.empty() ? nullptr : relays[i].get(), moves, copies);
    }
    claims.check(plan_.exchange.kv_arena_rows, "fetches", violations_);
    compare_moves(moves, plan_.exchange.kv_moves, "fetches", violations_);
    compare_moves(copies, plan_.exchange.kv_copies, "fetches", violations_);
  }

  void expect_fetch(const KvFetch& fetch, const StretchRelays* relays, std::vector<RowMove>& moves,
                    std::vector<RowMove>& copies) const {
    const std::int32_t to = fetch.destination;
    const PoolSample& sample = plan_.layout.samples[at(fetch.sample)];
    for (std::int64_t token = 0; token < fetch.tokens;) {
      const TokenHomes::Place home = homes_.find(sample.replica, sample.begin + token);
      const std::int64_t rows = std::min(home.left, fetch.tokens - token);
      const std::int32_t from = home_worker(plan_, home, fetch.kv_shard);
      RowMove move{from, to, fetch.kv_shard, 0, home.row, fetch.arena_row + token, rows};
      if (relays != nullptr && plan_.options.node_of(from) != plan_.options.node_of(to)) {
        expect_relay(plan_.exchange.fetches[relays->at(token)], token, move);
      }
      (from == to ? copies : moves).push_back(move);
      token += rows;
    }
  }

  static void expect_relay(const KvFetch& relay, std::int64_t token, RowMove& move) {
    if (relay.destination == move.to) return;
    move.from = relay.destination;
    move.round = 1;
    move.from_row = relay.arena_row + token;
  }

  const PoolPlan& plan_;
  const TokenHomes& homes_;
  HeadSplit heads_;
  Violations& violations_;
};

}  // namespace

void check_exchange(const PoolPlan& plan, const TokenHomes& homes, Violations& violations) {
  ExchangeChecker(plan, homes, violations).run();
}

}  // namespace libra
