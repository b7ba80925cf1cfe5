#include "libra/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra {
namespace {

using Violations = std::vector<Violation>;

// Where a token of a sequence lives, by binary search over the runs of the sequence's parts.
class TokenHomes {
 public:
  struct Place {
    std::int32_t part = -1;
    std::int64_t row = -1;
    std::int64_t left = 0;  // tokens from here on that follow in consecutive rows
  };

  explicit TokenHomes(const HomeLayout& layout) {
    for (std::size_t part = 0; part < layout.parts.size(); ++part) {
      std::int64_t row = 0;
      for (const TokenRange run : layout.parts[part].runs) {
        runs_[{layout.parts[part].replica, run.begin}] = {run, static_cast<std::int32_t>(part),
                                                          row};
        row += run.size();
      }
    }
  }

  Place find(std::int32_t replica, std::int64_t token) const {
    auto after = runs_.upper_bound({replica, token});
    if (after == runs_.begin()) return {};
    const auto& [key, run] = *std::prev(after);
    if (key.first != replica || !run.tokens.contains(token)) return {};
    return {run.part, run.row + token - run.tokens.begin, run.tokens.end - token};
  }

  /// The first token in [0, tokens) that not exactly one run holds; -1 if there is none.
  std::int64_t first_uncovered(std::int32_t replica, std::int64_t tokens) const {
    std::int64_t next = 0;
    for (auto it = runs_.lower_bound({replica, 0}); it != runs_.end() && it->first.first == replica;
         ++it) {
      if (it->second.tokens.begin != next) return std::min(next, it->second.tokens.begin);
      next = it->second.tokens.end;
    }
    return next == tokens ? -1 : std::min(next, tokens);
  }

 private:
  struct PlacedRun {
    TokenRange tokens;
    std::int32_t part;
    std::int64_t row;
  };
  std::map<std::pair<std::int32_t, std::int64_t>, PlacedRun> runs_;
};

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
    if (!joined.empty() && joined.back().to == move.to && joined.back().from == move.from &&
        joined.back().shard == move.shard &&
        joined.back().to_row + joined.back().rows == move.to_row &&
        joined.back().from_row + joined.back().rows == move.from_row) {
      joined.back().rows += move.rows;
    } else {
      joined.push_back(move);
    }
  }
  return joined;
}

std::string to_string(const RowMove& move) {
  return fmt::format("{} rows of shard {} from worker {} row {} to worker {} row {}", move.rows,
                     move.shard, move.from, move.from_row, move.to, move.to_row);
}

void compare_moves(const std::vector<RowMove>& expected, const std::vector<RowMove>& found,
                   const char* rule, Violations& violations) {
  const std::vector<RowMove> want = canonical(expected);
  const std::vector<RowMove> have = canonical(found);
  const auto [w, h] = std::mismatch(want.begin(), want.end(), have.begin(), have.end());
  if (w == want.end() && h == have.end()) return;
  violations.push_back(
      {rule, fmt::format("expected {}, found {}", w == want.end() ? "nothing more" : to_string(*w),
                         h == have.end() ? "nothing more" : to_string(*h))});
}

// Half-open row intervals by worker: do any two overlap, does any reach past the end?
class RowClaims {
 public:
  void claim(std::int32_t worker, std::int64_t begin, std::int64_t rows) {
    claims_.emplace_back(worker, begin, begin + rows);
  }

  void check(const std::vector<std::int64_t>& arena_rows, const char* rule,
             Violations& violations) {
    std::sort(claims_.begin(), claims_.end());
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      const auto [worker, begin, end] = claims_[i];
      if (begin < 0 || end > arena_rows[at(worker)]) {
        violations.push_back(
            {rule, fmt::format("rows [{}, {}) lie outside the {} arena rows of worker {}", begin,
                               end, arena_rows[at(worker)], worker)});
      }
      if (i > 0 && std::get<0>(claims_[i - 1]) == worker && std::get<2>(claims_[i - 1]) > begin) {
        violations.push_back(
            {rule, fmt::format("arena row {} of worker {} is used twice", begin, worker)});
      }
    }
  }

 private:
  std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t>> claims_;
};

class Validator {
 public:
  explicit Validator(const PoolPlan& plan) : plan_(plan), homes_(plan.layout) {}

  Violations run() {
    if (!check_options_rule() || !check_homes()) return std::move(violations_);
    heads_.emplace(plan_.heads());
    if (check_tiles() && check_placement()) {
      check_queries();
      check_keys();
      check_fetches();
    }
    return std::move(violations_);
  }

 private:
  void violate(const char* rule, std::string detail) {
    violations_.push_back({rule, std::move(detail)});
  }

  bool check_options_rule() {
    try {
      check_options(plan_.options, static_cast<std::int32_t>(plan_.sequences.size()));
      return true;
    } catch (const ConfigError& error) {
      violate("options", error.what());
      return false;
    }
  }

  bool check_homes() {
    const std::size_t before = violations_.size();
    const std::int32_t parts = plan_.options.cp / plan_.options.tp;
    if (plan_.layout.tp != plan_.options.tp || plan_.layout.parts_per_sequence != parts ||
        plan_.layout.parts.size() != plan_.sequences.size() * at(parts)) {
      violate("homes", fmt::format("{} parts for {} sequences of {} parts",
                                   plan_.layout.parts.size(), plan_.sequences.size(), parts));
      return false;
    }
    for (std::size_t replica = 0; replica < plan_.sequences.size(); ++replica) {
      const std::int64_t token = homes_.first_uncovered(static_cast<std::int32_t>(replica),
                                                        plan_.sequences[replica].tokens);
      if (token >= 0)
        violate("homes",
                fmt::format("token {} of sequence {} has not exactly one home", token, replica));
    }
    for (std::size_t part = 0; part < plan_.layout.parts.size(); ++part) check_rows(part);
    check_samples();
    return violations_.size() == before;
  }

  // Runs with the same first token would hide each other in TokenHomes; their sizes do not.
  void check_rows(std::size_t part) {
    const TokenPart& found = plan_.layout.parts[part];
    std::int64_t rows = 0;
    for (const TokenRange run : found.runs) rows += run.size();
    rows_of_replica_[found.replica] += rows;
    if (rows != found.rows)
      violate("homes", fmt::format("part {} says {} rows and has {}", part, found.rows, rows));
    const auto sequence = static_cast<std::int32_t>(part) / plan_.layout.parts_per_sequence;
    if (found.replica != sequence)
      violate("homes", fmt::format("part {} says replica {}", part, found.replica));
    const bool last = (static_cast<std::int32_t>(part) + 1) % plan_.layout.parts_per_sequence == 0;
    if (last && rows_of_replica_[sequence] != plan_.sequences[at(sequence)].tokens) {
      violate("homes",
              fmt::format("the parts of sequence {} have {} rows for {} tokens", sequence,
                          rows_of_replica_[sequence], plan_.sequences[at(sequence)].tokens));
    }
  }

  void check_samples() {
    std::size_t sample = 0;
    for (std::size_t replica = 0; replica < plan_.sequences.size(); ++replica) {
      std::int64_t begin = 0;
      for (const std::int64_t tokens : plan_.sequences[replica].sample_tokens) {
        if (sample >= plan_.layout.samples.size()) break;
        const PoolSample& found = plan_.layout.samples[sample++];
        if (found.replica != static_cast<std::int32_t>(replica) || found.begin != begin ||
            found.tokens != tokens) {
          violate("homes", fmt::format("sample {} is not where its sequence {} has it", sample - 1,
                                       replica));
        }
        begin += tokens;
      }
    }
    std::size_t expected = 0;
    for (const PackedSequence& sequence : plan_.sequences)
      expected += sequence.sample_tokens.size();
    if (plan_.layout.samples.size() != expected) {
      violate("homes", fmt::format("{} samples, the sequences have {}", plan_.layout.samples.size(),
                                   expected));
    }
  }

  bool check_tiles() {
    const std::size_t before = violations_.size();
    if (plan_.tiling.head_shards != plan_.options.head_shards ||
        plan_.tiling.tp != plan_.options.tp ||
        plan_.tiling.shards_per_home * plan_.options.tp != plan_.options.head_shards) {
      violate("tiles", "the tiling was made for other head shards");
      return false;
    }
    check_coverage();
    for (std::size_t block = 0; block < plan_.tiling.blocks.size(); ++block) check_block(block);
    return violations_.size() == before;
  }

  // Pieces in (sample, token) order must run through every sample without gap or overlap.
  void check_coverage() {
    std::vector<Piece> pieces = plan_.tiling.pieces;
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.sample, a.queries.begin) < std::tie(b.sample, b.queries.begin);
    });
    std::size_t next = 0;
    for (std::size_t sample = 0; sample < plan_.layout.samples.size(); ++sample) {
      std::int64_t token = 0;
      while (next < pieces.size() && pieces[next].sample == static_cast<std::int32_t>(sample) &&
             pieces[next].queries.begin == token && !pieces[next].queries.empty()) {
        token = pieces[next++].queries.end;
      }
      if (token != plan_.layout.samples[sample].tokens) {
        violate("tiles",
                fmt::format("token {} of sample {} is not computed exactly once", token, sample));
        return;
      }
    }
    if (next != pieces.size())
      violate("tiles", fmt::format("piece of sample {} is one too many", pieces[next].sample));
  }

  void check_block(std::size_t index) {
    const Block& block = plan_.tiling.blocks[index];
    const auto pieces = static_cast<std::int32_t>(plan_.tiling.pieces.size());
    const std::int32_t expected_first = index == 0 ? 0 : plan_.tiling.blocks[index - 1].end_piece;
    const bool last = index + 1 == plan_.tiling.blocks.size();
    if (block.first_piece != expected_first || block.end_piece <= block.first_piece ||
        block.end_piece > pieces || (last && block.end_piece != pieces)) {
      violate("tiles", fmt::format("block {} has pieces [{}, {}) of {}", index, block.first_piece,
                                   block.end_piece, pieces));
      return;
    }
    std::int64_t tokens = 0;
    for (const Piece& piece : plan_.tiling.pieces_of(block)) {
      tokens += piece.queries.size();
      check_piece_home(index, block, piece);
    }
    if (tokens != block.tokens || tokens > plan_.options.block_tokens) {
      violate("tiles", fmt::format("block {} says {} tokens and has {} of at most {}", index,
                                   block.tokens, tokens, plan_.options.block_tokens));
    }
    if (block.cost < 0) violate("tiles", fmt::format("block {} costs {}", index, block.cost));
  }

  void check_piece_home(std::size_t index, const Block& block, const Piece& piece) {
    const PoolSample& sample = plan_.layout.samples[at(piece.sample)];
    const TokenHomes::Place place = homes_.find(sample.replica, sample.begin + piece.queries.begin);
    if (place.part != block.part || place.row != piece.row || place.left < piece.queries.size()) {
      violate(
          "tiles",
          fmt::format("block {}: queries [{}, {}) of sample {} are not at row {} of part {}", index,
                      piece.queries.begin, piece.queries.end, piece.sample, piece.row, block.part));
    }
  }

  bool check_placement() {
    const std::size_t before = violations_.size();
    const Placement& placement = plan_.placement;
    if (placement.destination.size() != at(plan_.tiling.tiles()) ||
        placement.load.size() != at(plan_.workers())) {
      violate("placement", fmt::format("{} destinations for {} tiles, {} loads for {} workers",
                                       placement.destination.size(), plan_.tiling.tiles(),
                                       placement.load.size(), plan_.workers()));
      return false;
    }
    std::vector<std::int64_t> load(at(plan_.workers()), 0);
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile) {
      const std::int32_t worker = placement.destination[at(tile)];
      if (worker < 0 || worker >= plan_.workers()) {
        violate("placement",
                fmt::format("tile {} goes to worker {} of {}", tile, worker, plan_.workers()));
      } else {
        load[at(worker)] += plan_.tiling.block_of(tile).cost;
      }
    }
    if (violations_.size() == before && load != placement.load)
      violate("placement", "loads are not the sums of the tiles' costs");
    return violations_.size() == before;
  }

  void check_queries() {
    const ExchangePlan& exchange = plan_.exchange;
    if (exchange.tile_arena_row.size() != at(plan_.tiling.tiles()) ||
        exchange.q_arena_rows.size() != at(plan_.workers())) {
      violate("queries", "arena rows are not given for every tile and worker");
      return;
    }
    std::vector<RowMove> expected;
    RowClaims claims;
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile)
      expect_queries(tile, expected, claims);
    claims.check(exchange.q_arena_rows, "queries", violations_);
    compare_moves(expected, exchange.q_moves, "queries", violations_);
  }

  void expect_queries(std::int32_t tile, std::vector<RowMove>& expected, RowClaims& claims) {
    const std::int32_t home = plan_.tiling.home_of(tile);
    const std::int32_t to = plan_.placement.destination[at(tile)];
    std::int64_t row = plan_.exchange.tile_arena_row[at(tile)];
    if (to == home || row < 0) {
      if ((to == home) != (row < 0))
        violate("queries", fmt::format("tile {}: moved and at home at once", tile));
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

  std::int64_t needed(const Piece& piece) const {
    return plan_.options.fetch == Fetch::kWhole ? plan_.layout.samples[at(piece.sample)].tokens
                                                : piece.queries.end;
  }

  // Whether the worker's own rows hold keys [0, tokens) of the sample one after the other.
  bool local(std::int32_t sample, std::int64_t tokens, std::int32_t kv_shard,
             std::int32_t worker) const {
    const PoolSample& s = plan_.layout.samples[at(sample)];
    const TokenHomes::Place place = homes_.find(s.replica, s.begin);
    return place.left >= tokens && place.part * plan_.options.tp + head_part(kv_shard) == worker;
  }

  std::int32_t head_part(std::int32_t kv_shard) const {
    return kv_shard * heads_->kv_shard_heads / (plan_.options.shape.kv_heads / plan_.options.tp);
  }

  void check_keys() {
    if (plan_.exchange.kv_arena_rows.size() != at(plan_.workers())) {
      violate("keys", "arena rows are not given for every worker");
      return;
    }
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int64_t> longest;
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile) {
      const std::int32_t worker = plan_.placement.destination[at(tile)];
      const std::int32_t kv_shard = heads_->kv_shard_of(plan_.tiling.shard_of(tile));
      for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
        if (local(piece.sample, needed(piece), kv_shard, worker)) continue;
        std::int64_t& tokens = longest[{worker, kv_shard, piece.sample}];
        tokens = std::max(tokens, needed(piece));
      }
    }
    compare_fetches(longest);
  }

  template <typename Longest>
  void compare_fetches(const Longest& longest) {
    std::size_t used = 0;
    for (const auto& [key, tokens] : longest) {
      const auto [worker, kv_shard, sample] = key;
      const KvFetch* fetch = find_fetch(plan_.exchange, worker, kv_shard, sample);
      if (fetch == nullptr || fetch->tokens < tokens) {
        violate(
            "keys",
            fmt::format("worker {} needs keys [0, {}) of sample {}, KV shard {}, and has {}",
                        worker, tokens, sample, kv_shard, fetch == nullptr ? 0 : fetch->tokens));
      } else if (fetch->tokens > tokens) {
        violate("fetches",
                fmt::format("worker {} fetches {} keys of sample {}, KV shard {}, and needs {}",
                            worker, fetch->tokens, sample, kv_shard, tokens));
      }
      used += fetch != nullptr ? 1 : 0;
    }
    if (used != plan_.exchange.fetches.size()) {
      violate("fetches",
              fmt::format("{} fetches, {} of them used", plan_.exchange.fetches.size(), used));
    }
  }

  void check_fetches() {
    std::vector<RowMove> moves;
    std::vector<RowMove> copies;
    RowClaims claims;
    for (const KvFetch& fetch : plan_.exchange.fetches) {
      if (fetch.destination < 0 || fetch.destination >= plan_.workers() || fetch.sample < 0 ||
          at(fetch.sample) >= plan_.layout.samples.size() || fetch.kv_shard < 0 ||
          fetch.kv_shard >= heads_->kv_shards ||
          fetch.tokens > plan_.layout.samples[at(fetch.sample)].tokens) {
        violate(
            "fetches",
            fmt::format("fetch of {} keys of sample {}, KV shard {}, to worker {} does not exist",
                        fetch.tokens, fetch.sample, fetch.kv_shard, fetch.destination));
        return;
      }
      claims.claim(fetch.destination, fetch.arena_row, fetch.tokens);
      expect_fetch(fetch, moves, copies);
    }
    claims.check(plan_.exchange.kv_arena_rows, "fetches", violations_);
    compare_moves(moves, plan_.exchange.kv_moves, "fetches", violations_);
    compare_moves(copies, plan_.exchange.kv_copies, "fetches", violations_);
  }

  void expect_fetch(const KvFetch& fetch, std::vector<RowMove>& moves,
                    std::vector<RowMove>& copies) const {
    const PoolSample& sample = plan_.layout.samples[at(fetch.sample)];
    for (std::int64_t token = 0; token < fetch.tokens;) {
      const TokenHomes::Place place = homes_.find(sample.replica, sample.begin + token);
      const std::int64_t rows = std::min(place.left, fetch.tokens - token);
      const std::int32_t from = place.part * plan_.options.tp + head_part(fetch.kv_shard);
      (from == fetch.destination ? copies : moves)
          .push_back({from, fetch.destination, fetch.kv_shard, 0, place.row,
                      fetch.arena_row + token, rows});
      token += rows;
    }
  }

  const PoolPlan& plan_;
  TokenHomes homes_;
  std::map<std::int32_t, std::int64_t> rows_of_replica_;
  std::optional<HeadSplit> heads_;  // once the options are known to be legal
  Violations violations_;
};

}  // namespace

std::vector<Violation> validate(const PoolPlan& plan) { return Validator(plan).run(); }

void require_valid(const PoolPlan& plan) {
  const std::vector<Violation> violations = validate(plan);
  if (violations.empty()) return;
  throw PlanError(fmt::format("the plan breaks its promise '{}' ({}), {} violations in all",
                              violations[0].rule, violations[0].detail, violations.size()));
}

}  // namespace libra
