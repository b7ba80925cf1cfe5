#include "libra/plan/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "libra/base/index.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"

namespace libra {
namespace {

using ::testing::ElementsAre;

// Which (sample, token, head) a memory cell holds; nothing at first.
struct Label {
  std::int32_t sample = -1;
  std::int64_t token = -1;
  std::int32_t head = -1;
  friend bool operator==(const Label&, const Label&) = default;
};

// One row of labels per head: what Q (or K) of a worker looks like if each element says where it is
// from.
using Rows = std::vector<std::vector<Label>>;

// The pool's memory before and after the exchange, row by row and head by head.
class SimulatedPool {
 public:
  explicit SimulatedPool(const PoolPlan& plan) : plan_(plan) {
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      own_q_.push_back(own_rows(worker, plan.options.shape.q_heads / plan.options.tp));
      own_k_.push_back(own_rows(worker, plan.options.shape.kv_heads / plan.options.tp));
      q_arena_.push_back(empty_rows(plan.exchange.q_arena_rows[at(worker)], shard_heads()));
      kv_arena_.push_back(empty_rows(plan.exchange.kv_arena_rows[at(worker)], kv_shard_heads()));
    }
  }

  void exchange() {
    for (const RowMove& move : plan_.exchange.q_moves) {
      ASSERT_NE(move.from, move.to) << "what is local does not travel";
      carry_out(move, own_q_[at(move.from)], q_arena_[at(move.to)], shard_heads(),
                plan_.options.head_shards);
    }
    for (const RowMove& move : plan_.exchange.kv_moves) {
      ASSERT_NE(move.from, move.to) << "what is local does not travel";
      if (move.round > 0) continue;
      carry_out(move, own_k_[at(move.from)], kv_arena_[at(move.to)], kv_shard_heads(),
                plan_.heads().kv_shards);
    }
    // An arena has the heads of one shard only, as if a worker held no others.
    for (const RowMove& move : plan_.exchange.kv_moves) {
      if (move.round == 0) continue;
      carry_out(move, kv_arena_[at(move.from)], kv_arena_[at(move.to)], kv_shard_heads(),
                plan_.options.tp);
    }
    for (const RowMove& copy : plan_.exchange.kv_copies) {
      ASSERT_EQ(copy.from, copy.to);
      carry_out(copy, own_k_[at(copy.from)], kv_arena_[at(copy.to)], kv_shard_heads(),
                plan_.heads().kv_shards);
    }
  }

  void expect_tile_complete(std::int32_t tile) const {
    const std::int32_t worker = plan_.placement.destination[at(tile)];
    const Block& block = plan_.tiling.block_of(tile);
    const std::int64_t arena_row = plan_.exchange.tile_arena_row[at(tile)];
    ASSERT_EQ(arena_row < 0, worker == plan_.tiling.home_of(tile));
    std::int64_t row = arena_row;
    for (const Piece& piece : plan_.tiling.pieces_of(block)) {
      expect_queries(tile, worker, piece, row);
      expect_keys(tile, worker, piece);
      if (arena_row >= 0) row += piece.queries.size();
    }
  }

  // Every arena row was written, and only once (carry_out refuses a second time).
  void expect_arenas_full() const {
    for (const auto& arenas : {q_arena_, kv_arena_}) {
      for (const Rows& arena : arenas) {
        for (const auto& row : arena) {
          for (const Label& label : row) ASSERT_GE(label.sample, 0);
        }
      }
    }
  }

 private:
  std::int32_t shard_heads() const {
    return plan_.options.shape.q_heads / plan_.options.head_shards;
  }
  std::int32_t kv_shard_heads() const {
    return plan_.options.shape.kv_heads / plan_.heads().kv_shards;
  }

  static Rows empty_rows(std::int64_t rows, std::int32_t heads) {
    return Rows(at(rows), std::vector<Label>(at(heads)));
  }

  Rows own_rows(std::int32_t worker, std::int32_t heads) const {
    Rows rows = empty_rows(plan_.layout.part_of(worker).rows, heads);
    const std::int32_t first_head = worker % plan_.options.tp * heads;
    for (const Fragment& fragment : plan_.layout.fragments) {
      if (fragment.part != worker / plan_.options.tp) continue;
      for (std::int64_t i = 0; i < fragment.tokens.size(); ++i) {
        for (std::int32_t head = 0; head < heads; ++head)
          rows[at(fragment.row + i)][at(head)] = {fragment.sample, fragment.tokens.begin + i,
                                                  first_head + head};
      }
    }
    return rows;
  }

  // `heads` is the width of a shard, `shards` their number over all heads of the sequence.
  void carry_out(const RowMove& move, const Rows& source, Rows& arena, std::int32_t heads,
                 std::int32_t shards) const {
    const std::int32_t first_own_head = move.shard % (shards / plan_.options.tp) * heads;
    for (std::int64_t i = 0; i < move.rows; ++i) {
      ASSERT_LT(at(move.from_row + i), source.size());
      ASSERT_LT(at(move.to_row + i), arena.size());
      for (std::int32_t head = 0; head < heads; ++head) {
        Label& cell = arena[at(move.to_row + i)][at(head)];
        ASSERT_EQ(cell, Label{}) << "written twice";
        cell = source[at(move.from_row + i)][at(first_own_head + head)];
      }
    }
  }

  void expect_queries(std::int32_t tile, std::int32_t worker, const Piece& piece,
                      std::int64_t arena_row) const {
    const std::int32_t first_head = plan_.tiling.shard_of(tile) * shard_heads();
    const std::int32_t own_heads = plan_.options.shape.q_heads / plan_.options.tp;
    for (std::int64_t i = 0; i < piece.queries.size(); ++i) {
      for (std::int32_t head = 0; head < shard_heads(); ++head) {
        const Label expected{piece.sample, piece.queries.begin + i, first_head + head};
        const Label found =
            arena_row < 0 ? own_q_[at(worker)][at(piece.row + i)][at(expected.head % own_heads)]
                          : q_arena_[at(worker)][at(arena_row + i)][at(head)];
        ASSERT_EQ(found, expected);
      }
    }
  }

  // Keys [0, end) of the piece's sample lie one after the other: at home, or in the fetch's rows.
  void expect_keys(std::int32_t tile, std::int32_t worker, const Piece& piece) const {
    const std::int32_t kv_shard = plan_.heads().kv_shard_of(plan_.tiling.shard_of(tile));
    const KvFetch* fetch = find_fetch(plan_.exchange, worker, kv_shard, piece.sample);
    if (fetch == nullptr) {
      expect_keys_at_home(worker, kv_shard, piece);
      return;
    }
    ASSERT_GE(fetch->tokens, piece.queries.end);
    for (std::int64_t token = 0; token < fetch->tokens; ++token) {
      for (std::int32_t head = 0; head < kv_shard_heads(); ++head) {
        const Label expected{piece.sample, token, kv_shard * kv_shard_heads() + head};
        ASSERT_EQ(kv_arena_[at(worker)][at(fetch->arena_row + token)][at(head)], expected);
      }
    }
  }

  void expect_keys_at_home(std::int32_t worker, std::int32_t kv_shard, const Piece& piece) const {
    const std::int64_t row = plan_.layout.fragments_of(piece.sample).front().row;
    const std::int32_t own_heads = plan_.options.shape.kv_heads / plan_.options.tp;
    for (std::int64_t token = 0; token < piece.queries.end; ++token) {
      for (std::int32_t head = 0; head < kv_shard_heads(); ++head) {
        const Label expected{piece.sample, token, kv_shard * kv_shard_heads() + head};
        ASSERT_LT(at(row + token), own_k_[at(worker)].size());
        ASSERT_EQ(own_k_[at(worker)][at(row + token)][at(expected.head % own_heads)], expected);
      }
    }
  }

  const PoolPlan& plan_;
  std::vector<Rows> own_q_, own_k_, q_arena_, kv_arena_;
};

PoolPlan random_plan(std::uint64_t seed) {
  auto [options, sequences] = testing::random_problem(seed);
  return make_plan(options, sequences);
}

TEST(Exchange, CarriedOutBringsEveryPieceItsQueriesAndAllItsKeys) {
  std::int64_t moves = 0;
  std::int64_t copies = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed);
    SimulatedPool pool(plan);
    pool.exchange();
    for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) pool.expect_tile_complete(tile);
    pool.expect_arenas_full();
    if (HasFatalFailure()) return;
    moves += static_cast<std::int64_t>(plan.exchange.kv_moves.size());
    copies += static_cast<std::int64_t>(plan.exchange.kv_copies.size());
  }
  EXPECT_GT(moves, 1000);
  EXPECT_GT(copies, 100);
}

TEST(Exchange, FetchesEachKvGroupOncePerDestinationAndAsFarAsItIsNeeded) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed);
    using Group = std::tuple<std::int32_t, std::int32_t, std::int32_t>;
    std::map<Group, std::int64_t> last_query;
    for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
      for (const Piece& piece : plan.tiling.pieces_of(plan.tiling.block_of(tile))) {
        const Group group(plan.placement.destination[at(tile)],
                          plan.heads().kv_shard_of(plan.tiling.shard_of(tile)), piece.sample);
        last_query[group] = std::max(last_query[group], piece.queries.end);
      }
    }
    std::set<Group> fetched;
    for (const KvFetch& fetch : plan.exchange.fetches) {
      const Group group(fetch.destination, fetch.kv_shard, fetch.sample);
      EXPECT_TRUE(fetched.insert(group).second) << "fetched twice";
      EXPECT_EQ(find_fetch(plan.exchange, fetch.destination, fetch.kv_shard, fetch.sample), &fetch);
      ASSERT_EQ(last_query.count(group), 1U) << "fetched and not used";
      EXPECT_EQ(fetch.tokens, plan.options.fetch == Fetch::kWhole
                                  ? plan.layout.samples[at(fetch.sample)].tokens
                                  : last_query[group]);
    }
  }
}

TEST(Exchange, OfNothingMovedFetchesOnlyWhatHomesLack) {
  PlanOptions options;
  options.shape = {4, 2, 4, 4};
  options.cp = 2;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{20, {15, 5}}});
  EXPECT_TRUE(plan.exchange.q_moves.empty());
  // Queries 10 to 14 of sample 0 live at worker 1 and need all 15 keys: 10 come, 5 are there.
  EXPECT_THAT(plan.exchange.fetches,
              ElementsAre(KvFetch{1, 0, 0, 15, 0}, KvFetch{1, 1, 0, 15, 15}));
  EXPECT_THAT(plan.exchange.kv_moves,
              ElementsAre(RowMove{0, 1, 0, 0, 0, 0, 10}, RowMove{0, 1, 1, 0, 0, 15, 10}));
  EXPECT_THAT(plan.exchange.kv_copies,
              ElementsAre(RowMove{1, 1, 0, 0, 0, 10, 5}, RowMove{1, 1, 1, 0, 0, 25, 5}));
}

TEST(Exchange, PrefixStopsAtTheLastQueryWhereWholeTakesAll) {
  PlanOptions options;
  options.shape = {2, 2, 4, 4};
  options.cp = 4;
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kNone;
  for (const auto& [fetch, tokens] : {std::pair(Fetch::kPrefix, 20), {Fetch::kWhole, 40}}) {
    options.fetch = fetch;
    const PoolPlan plan = make_plan(options, {{40, {40}}});
    const KvFetch* found = find_fetch(plan.exchange, 1, 0, 0);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->tokens, tokens);
  }
}

TEST(Exchange, ShardsThatShareAKvHeadFetchItOnce) {
  PlanOptions options;
  options.shape = {8, 1, 4, 4};
  options.cp = 2;
  options.head_shards = 8;
  options.chunks = 1;
  options.block_tokens = 10;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{20, {20}}});
  ASSERT_EQ(plan.exchange.fetches.size(), 1U);
  EXPECT_EQ(plan.exchange.kv_arena_rows[1], 20);
}

TEST(Exchange, NeighbouringRowsTravelTogether) {
  PlanOptions options;
  options.shape = {2, 2, 4, 4};
  options.cp = 2;
  options.head_shards = 2;
  options.chunks = 1;
  options.block_tokens = 4;
  options.placer = PlacerKind::kUlysses;
  const PoolPlan plan = make_plan(options, {{40, {1, 1, 18, 0, 20}}});
  EXPECT_THAT(plan.exchange.q_moves,
              ElementsAre(RowMove{1, 0, 0, 0, 0, 0, 20}, RowMove{0, 1, 1, 0, 0, 0, 20}));
}

TEST(Exchange, AWorkerWithoutWorkHasEmptyArenas) {
  PlanOptions options;
  options.cp = 2;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{100, {40}}});
  EXPECT_THAT(plan.exchange.q_arena_rows, ElementsAre(0, 0));
  EXPECT_THAT(plan.exchange.kv_arena_rows, ElementsAre(0, 0));
  EXPECT_TRUE(plan.exchange.kv_moves.empty());
}

// What a worker computes and moves in each chunk, in units of one row of one head.
struct ChunkWork {
  std::int64_t pairs = 0;
  std::int64_t q_rows = 0;
  std::int64_t kv_rows = 0;
};

std::vector<std::vector<ChunkWork>> work_by_worker_and_chunk(const PoolPlan& plan) {
  const HeadSplit heads = plan.heads();
  std::vector<std::vector<ChunkWork>> work(at(plan.workers()),
                                           std::vector<ChunkWork>(at(plan.options.chunks)));
  for (std::int32_t chunk = 0; chunk < plan.options.chunks; ++chunk) {
    for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
      for (const Piece& piece : plan.tiling.pieces_of(plan.tiling.block_of(tile)))
        work[at(plan.placement.destination[at(tile)])][at(chunk)].pairs +=
            query_key_pairs(piece.queries) * heads.chunk_heads;
    }
    for (const RowMove& move : plan.exchange.q_moves)
      work[at(move.to)][at(chunk)].q_rows += move.rows * heads.chunk_heads;
    if (!heads.first_of_kv_chunk(chunk)) continue;
    for (const RowMove& move : plan.exchange.kv_moves)
      work[at(move.to)][at(chunk)].kv_rows += move.rows * heads.kv_chunk_heads;
  }
  return work;
}

TEST(Chunks, OfAWorkerComputeAndMoveTheSame) {
  // Keys and values too, as long as there are no more chunks than KV heads in a shard; beyond that
  // a KV head travels once, with the first chunk that uses it.
  int equal_kv = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed);
    const HeadSplit heads = plan.heads();
    const bool kv_in_every_chunk = plan.options.chunks <= heads.kv_shard_heads;
    equal_kv += kv_in_every_chunk ? 1 : 0;
    const auto work = work_by_worker_and_chunk(plan);
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const std::vector<ChunkWork>& chunks = work[at(worker)];
      std::int64_t kv_rows = 0;
      for (const ChunkWork& chunk : chunks) {
        ASSERT_EQ(chunk.pairs, chunks[0].pairs);
        ASSERT_EQ(chunk.q_rows, chunks[0].q_rows);
        if (kv_in_every_chunk) {
          ASSERT_EQ(chunk.kv_rows, chunks[0].kv_rows);
        }
        kv_rows += chunk.kv_rows;
      }
      ASSERT_EQ(chunks[0].pairs * plan.options.chunks, plan.placement.load[at(worker)]);
      std::int64_t moved = 0;
      for (const RowMove& move : plan.exchange.kv_moves)
        moved += move.to == worker ? move.rows * heads.kv_shard_heads : 0;
      ASSERT_EQ(kv_rows, moved) << "all chunks together move each KV head once";
    }
  }
  EXPECT_GT(equal_kv, 30);
}

}  // namespace
}  // namespace libra
