#include "libra/plan/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

// Token by token: which KV heads of which tokens lie at a worker, held or fetched.
class NaivePool {
 public:
  explicit NaivePool(const PoolPlan& plan) : plan_(plan), at_worker_(at(plan.workers())) {
    const std::int32_t kv_heads_each = plan.options.shape.kv_heads / plan.options.tp;
    for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
      const std::int32_t first = worker % plan.options.tp * kv_heads_each;
      for (const Fragment& fragment : plan.layout.fragments) {
        if (fragment.part != worker / plan.options.tp) continue;
        for (std::int32_t head = first; head < first + kv_heads_each; ++head)
          add(worker, fragment.sample, head, fragment.tokens);
      }
    }
  }

  /// Bytes that would have to travel if the tile were computed at the worker.
  std::int64_t incremental(std::int32_t tile, std::int32_t worker) const {
    const AttentionShape& shape = plan_.options.shape;
    const std::int64_t dims = shape.head_dim + shape.value_dim;
    std::int64_t rows = 0;
    for (const auto& [sample, head, token] : keys_of(tile)) {
      const auto found = at_worker_[at(worker)].find({sample, head});
      if (found == at_worker_[at(worker)].end() || found->second.count(token) == 0) ++rows;
    }
    if (worker != plan_.tiling.home_of(tile))
      rows += plan_.tiling.block_of(tile).tokens * heads_of(tile).size();
    return rows * dims * element_bytes(plan_.options.storage);
  }

  void put(std::int32_t tile, std::int32_t worker) {
    for (const auto& [sample, head, token] : keys_of(tile))
      at_worker_[at(worker)][{sample, head}].insert(token);
  }

 private:
  using Key = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // sample, KV head, token

  void add(std::int32_t worker, std::int32_t sample, std::int32_t head, TokenRange tokens) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
      at_worker_[at(worker)][{sample, head}].insert(t);
  }

  HeadRange heads_of(std::int32_t tile) const {
    const std::int32_t width = plan_.options.shape.q_heads / plan_.options.head_shards;
    const std::int32_t first = plan_.tiling.shard_of(tile) * width;
    return {first, first + width};
  }

  std::set<Key> keys_of(std::int32_t tile) const {
    std::set<Key> keys;
    for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
      const std::int64_t end = plan_.options.fetch == Fetch::kWhole
                                   ? plan_.layout.samples[at(piece.sample)].tokens
                                   : piece.queries.end;
      const HeadRange heads = heads_of(tile);
      for (std::int32_t q = heads.begin; q < heads.end; ++q) {
        for (std::int64_t t = 0; t < end; ++t)
          keys.insert({piece.sample, q / plan_.options.shape.group(), t});
      }
    }
    return keys;
  }

  const PoolPlan& plan_;
  std::vector<std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int64_t>>> at_worker_;
};

// `paper` and `reserve` as design states them, every choice by looking at all workers.
class NaivePlacer {
 public:
  explicit NaivePlacer(const PoolPlan& plan)
      : plan_(plan), pool_(plan), load_(at(plan.workers()), 0), unplaced_(load_) {
    std::int64_t total = 0;
    for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
      unplaced_[at(plan.tiling.home_of(tile))] += cost(tile);
      total += cost(tile);
    }
    // (1 + tau) * floor(total / W), rounded down; small pools need no care about overflow.
    const std::int64_t mean = total / plan.workers();
    cap_ = std::min(total, mean + mean * plan.options.tau_ppm / 1'000'000);
    if (plan.workers() == 1) cap_ = total;
  }

  std::vector<std::int32_t> run() {
    std::vector<std::int32_t> order(at(plan_.tiling.tiles()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](std::int32_t a, std::int32_t b) { return cost(a) > cost(b); });
    std::vector<std::int32_t> destination(order.size());
    for (const std::int32_t tile : order) {
      const std::int32_t home = plan_.tiling.home_of(tile);
      const std::int32_t worker =
          plan_.options.placer == PlacerKind::kPaper ? paper(tile) : reserve(tile, home);
      destination[at(tile)] = worker;
      load_[at(worker)] += cost(tile);
      unplaced_[at(home)] -= cost(tile);
      pool_.put(tile, worker);
    }
    return destination;
  }

  std::int64_t cap() const { return cap_; }

 private:
  std::int64_t cost(std::int32_t tile) const { return plan_.tiling.block_of(tile).cost; }

  std::int32_t paper(std::int32_t tile) const {
    const std::int32_t worker = cheapest(tile, load_);
    if (worker >= 0) return worker;
    return static_cast<std::int32_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
  }

  std::int32_t reserve(std::int32_t tile, std::int32_t home) const {
    if (load_[at(home)] + cost(tile) <= cap_) return home;
    std::vector<std::int64_t> promised = load_;
    for (std::size_t w = 0; w < promised.size(); ++w) promised[w] += unplaced_[w];
    const std::int32_t guest_of = cheapest(tile, promised);
    return guest_of >= 0 ? guest_of : paper(tile);
  }

  // The least (bytes, load, id) among workers w with taken[w] + cost <= cap.
  std::int32_t cheapest(std::int32_t tile, const std::vector<std::int64_t>& taken) const {
    std::int32_t best = -1;
    std::tuple<std::int64_t, std::int64_t, std::int32_t> best_key;
    for (std::int32_t w = 0; w < plan_.workers(); ++w) {
      if (taken[at(w)] + cost(tile) > cap_) continue;
      const std::tuple key(pool_.incremental(tile, w), load_[at(w)], w);
      if (best < 0 || key < best_key) {
        best = w;
        best_key = key;
      }
    }
    return best;
  }

  const PoolPlan& plan_;
  NaivePool pool_;
  std::vector<std::int64_t> load_;
  std::vector<std::int64_t> unplaced_;
  std::int64_t cap_ = 0;
};

PoolPlan random_plan(std::uint64_t seed, PlacerKind placer, std::int64_t max_tokens = 150) {
  auto [options, sequences] = testing::random_problem(seed, max_tokens);
  options.placer = placer;
  if (placer == PlacerKind::kUlysses) {
    options.shape = {8, 8, 4, 4};

    options.tp = 1;
    options.cp = 4;
    options.head_shards = 4;
    options.chunks = 2;
    if (options.home == HomeKind::kExplicit) options.home = HomeKind::kZigzagDocument;
    options.explicit_runs.clear();
  }
  return make_plan(options, sequences);
}

class GreedyPlacers : public ::testing::TestWithParam<PlacerKind> {};

TEST_P(GreedyPlacers, ChooseWhatANaiveRewriteChooses) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed, GetParam(), 60);
    NaivePlacer naive(plan);
    ASSERT_EQ(plan.placement.destination, naive.run());
    ASSERT_EQ(plan.placement.cap, naive.cap());
    moved += plan.tiles_moved();
  }
  EXPECT_GT(moved, 1000);
}

TEST_P(GreedyPlacers, KeepTheCapWhereTilesAreSmall) {
  // A greedy choice of the least loaded worker exceeds the mean by less than the heaviest tile: a
  // tau that covers this tile makes the cap feasible at every step.
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.placer = GetParam();
    options.tau_ppm = 0;
    PoolPlan plan = make_plan(options, sequences);
    std::int64_t heaviest = 0;
    for (const Block& block : plan.tiling.blocks) heaviest = std::max(heaviest, block.cost);
    const std::int64_t mean = plan.placement.cap;
    if (mean == 0 || heaviest > 50 * mean) continue;
    options.tau_ppm = static_cast<std::int32_t>((heaviest + 1) * 1'000'000 / mean + 1);
    plan = make_plan(options, sequences);
    for (const std::int64_t load : plan.placement.load) EXPECT_LE(load, plan.placement.cap);
  }
}

TEST_P(GreedyPlacers, GiveATileThatFitsNowhereAPlaceAllTheSame) {
  PlanOptions options;
  options.shape = {4, 4, 4, 4};
  options.cp = 4;
  options.head_shards = 1;
  options.chunks = 1;
  options.block_tokens = 1000;
  options.tau_ppm = 0;
  options.placer = GetParam();
  const PoolPlan plan = make_plan(options, {{800, {800}}});
  ASSERT_EQ(plan.placement.destination.size(), 4U);
  std::int64_t placed = 0;
  for (const std::int64_t load : plan.placement.load) placed += load;
  EXPECT_EQ(placed, flops_cost({0, 800}, 4));
  EXPECT_GT(plan.placement.max_over_mean(), 1.5);
}

INSTANTIATE_TEST_SUITE_P(Placement, GreedyPlacers,
                         ::testing::Values(PlacerKind::kPaper, PlacerKind::kReserve),
                         [](const auto& placer) {
                           return std::string(placer.param == PlacerKind::kPaper ? "Paper"
                                                                                 : "Reserve");
                         });

TEST(Placement, NoneKeepsEveryTileAtHome) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed, PlacerKind::kNone);
    for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile)
      ASSERT_EQ(plan.placement.destination[at(tile)], plan.tiling.home_of(tile));
  }
}

TEST(Placement, UlyssesPutsShardROfASequenceAtItsRankR) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PoolPlan plan = random_plan(seed, PlacerKind::kUlysses);
    for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
      const std::int32_t home = plan.tiling.home_of(tile);
      const std::int32_t to = plan.placement.destination[at(tile)];
      ASSERT_EQ(to / plan.options.cp, home / plan.options.cp) << "same sequence";
      ASSERT_EQ(to % plan.options.cp, plan.tiling.shard_of(tile));
    }
  }
}

TEST(Placement, ReserveMovesNothingWhereHomesAreBalanced) {
  PlanOptions options;
  options.cp = 4;
  options.home = HomeKind::kZigzagRow;
  options.block_tokens = 32;
  const PoolPlan plan = make_plan(options, {{1024, {1024}}, {1024, {1024}}});
  EXPECT_EQ(plan.tiles_moved(), 0);
}

TEST(Placement, OtherWorkIsBalancedWithTheTiles) {
  for (const PlacerKind placer :
       {PlacerKind::kPaper, PlacerKind::kReserve, PlacerKind::kBalanced}) {
    SCOPED_TRACE(placer_name(placer));
    PlanOptions options;
    options.cp = 4;
    options.block_tokens = 16;
    options.placer = placer;
    const PoolPlan plan = make_plan(options, {{1024, {1024}}, {1024, {1024}}});
    const std::int64_t mean = plan.placement.cap * 100 / 103;  // tau is 3%
    const std::vector<std::int64_t> other_work = {mean, 0, 0, mean / 2, 0, 0, 0, 0};
    const Placement placement = place_tiles(options, plan.layout, plan.tiling, other_work);
    const Placement tiles_alone =
        with_destinations(options, plan.layout, plan.tiling, placement.destination);
    for (std::size_t worker = 0; worker < 8; ++worker) {
      EXPECT_LE(placement.load[worker], placement.cap);
      EXPECT_EQ(placement.load[worker] - tiles_alone.load[worker], other_work[worker]);
    }
    EXPECT_NEAR(static_cast<double>(placement.cap), static_cast<double>(mean) * 1.1875 * 1.03,
                static_cast<double>(mean) * 1e-3);
  }
}

TEST(Placement, AWorkerWithoutWorkHasLoadZero) {
  PlanOptions options;
  options.cp = 4;
  options.placer = PlacerKind::kNone;
  const PoolPlan plan = make_plan(options, {{4000, {1000}}, {4000, {}}});
  EXPECT_GT(plan.placement.load[0], 0);
  for (std::size_t worker = 1; worker < 8; ++worker) EXPECT_EQ(plan.placement.load[worker], 0);
  EXPECT_DOUBLE_EQ(plan.placement.max_over_mean(), 8.0);
}

TEST(Placement, WithoutAnyWorkIsBalanced) {
  const PoolPlan plan = make_plan(PlanOptions{}, {{100, {0, 0}}});
  EXPECT_DOUBLE_EQ(plan.placement.max_over_mean(), 1.0);
  EXPECT_EQ(plan.tiling.tiles(), 0);
}

TEST(Placement, CapIsTheMeanPlusTauAndNeverAboveTheTotal) {
  PlanOptions options;
  options.shape = {1, 1, 4, 4};
  options.cp = 2;
  options.head_shards = 1;
  options.chunks = 1;
  options.tau_ppm = 100'000;
  EXPECT_EQ(make_plan(options, {{100, {99}}}).placement.cap, 2475 + 247);
  options.tau_ppm = 100'000'000;
  EXPECT_EQ(make_plan(options, {{100, {99}}}).placement.cap, 4950);
}

TEST(Placement, DestinationsFromElsewhereMustFitThePool) {
  const PoolPlan plan = random_plan(3, PlacerKind::kReserve);
  auto destination = plan.placement.destination;
  ASSERT_FALSE(destination.empty());
  EXPECT_EQ(with_destinations(plan.options, plan.layout, plan.tiling, destination), plan.placement);
  destination[0] = plan.workers();
  EXPECT_THROW(with_destinations(plan.options, plan.layout, plan.tiling, destination), PlanError);
  destination[0] = -1;
  EXPECT_THROW(with_destinations(plan.options, plan.layout, plan.tiling, destination), PlanError);
  destination = plan.placement.destination;
  destination.pop_back();
  EXPECT_THROW(with_destinations(plan.options, plan.layout, plan.tiling, destination), PlanError);
}

}  // namespace
}  // namespace libra
