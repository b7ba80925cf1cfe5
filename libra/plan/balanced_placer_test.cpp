#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "libra/base/index.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/random_plans.h"
#include "libra/plan/traffic.h"
#include "libra/plan/validate.h"

namespace libra {
namespace {

constexpr std::int64_t kNeverCut = std::int64_t{1} << 50;

PlanOptions qwen_options(std::int32_t cp) {
  PlanOptions options;
  options.cp = cp;
  options.placer = PlacerKind::kBalanced;
  return options;
}

std::int64_t forward_bytes(PoolPlan plan) {
  plan.options.return_lse = false;
  plan.options.backward = BackwardMode::kKeep;
  return forward_traffic(plan).total();
}

std::vector<PackedSequence> copies(std::int64_t count, const PackedSequence& sequence) {
  return std::vector<PackedSequence>(at(count), sequence);
}

PackedSequence tiny_samples(std::uint64_t seed, std::int64_t tokens) {
  Rng rng(seed, 7);
  PackedSequence sequence{tokens, {}};
  for (std::int64_t left = tokens; left > 0;) {
    const std::int64_t sample = std::min(left, testing::between(rng, 1, 60));
    sequence.sample_tokens.push_back(sample);
    left -= sample;
  }
  return sequence;
}

TEST(BalancedPlacer, KeepsEveryTileOfEqualDocumentsAtZigzagHomes) {
  PlanOptions options = qwen_options(8);
  options.home = HomeKind::kZigzagRow;
  const PoolPlan plan = make_plan(options, copies(8, {1 << 18, {1 << 18}}));
  EXPECT_EQ(plan.tiles_moved(), 0);
}

TEST(BalancedPlacer, KeepsEveryTileOfAPoolOfOneWorker) {
  EXPECT_EQ(make_plan(qwen_options(1), {{1 << 18, {200'000, 7, 50'000}}}).tiles_moved(), 0);
}

struct Case {
  const char* name;
  std::vector<PackedSequence> sequences;
};

class UnderTheCap : public ::testing::TestWithParam<Case> {};

TEST_P(UnderTheCap, IsEveryWorker) {
  for (const std::int32_t cp : {1, 8}) {
    for (const HomeKind home :
         {HomeKind::kContiguous, HomeKind::kZigzagRow, HomeKind::kZigzagDocument}) {
      SCOPED_TRACE(::testing::Message() << "cp " << cp << ", " << home_name(home));
      PlanOptions options = qwen_options(cp);
      options.home = home;
      const PoolPlan plan = make_plan(options, GetParam().sequences);
      EXPECT_LE(plan.placement.heaviest(), plan.placement.cap);
      EXPECT_TRUE(validate(plan).empty());
    }
  }
}

std::vector<PackedSequence> one_full_and_tiny() {
  std::vector<PackedSequence> sequences = {{1 << 16, {1 << 16}}};
  for (std::uint64_t seed = 0; seed < 7; ++seed) {
    sequences.push_back(tiny_samples(seed, 1 << 16));
  }
  return sequences;
}

INSTANTIATE_TEST_SUITE_P(
    BalancedPlacer, UnderTheCap,
    ::testing::Values(Case{"OneFullDocumentAndSevenPacksOfTinyOnes", one_full_and_tiny()},
                      Case{"SixteenDocumentsOfHalfTheLength", copies(8, {1 << 16, {32768, 32768}})},
                      Case{"SamplesJustOverABlock", copies(8, {1 << 16, {4097, 4097, 4097, 4097}})},
                      Case{"OneDocumentLargerThanAllElse",
                           {{1 << 19, {1 << 19}}, {1 << 19, {100}}, {1 << 19, {}}, {1 << 19, {}}}}),
    [](const auto& each) { return each.param.name; });

// A document of a million tokens among light ones: whole tiles are above the cap each.
TEST(BalancedPlacer, CutsOnlyTilesThatAreTooLargeForTheCap) {
  PlanOptions options = qwen_options(2);
  options.block_tokens = 1 << 16;
  std::vector<PackedSequence> sequences = copies(8, tiny_samples(1, 1 << 17));
  sequences[0] = {1 << 17, {1 << 17}};
  const PoolPlan plan = make_plan(options, sequences);
  EXPECT_GT(plan.options.max_tile_pairs, 0);
  EXPECT_LE(plan.placement.heaviest(), plan.placement.cap);
  EXPECT_TRUE(validate(plan).empty());
  std::int64_t whole = 0;
  for (const Block& block : plan.tiling.blocks) whole += block.tokens == 1 << 16 ? 1 : 0;
  EXPECT_EQ(whole, 14) << "those of the light sequences";
  options.placer = PlacerKind::kReserve;
  EXPECT_GT(make_plan(options, sequences).placement.max_over_mean(), 2);
}

TEST(BalancedPlacer, CutsNothingWhereTheCapHolds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.placer = PlacerKind::kBalanced;
    options.max_tile_pairs = 0;
    options.tau_ppm = kMaxTauPpm;
    EXPECT_EQ(make_plan(options, sequences).options.max_tile_pairs, 0);
  }
}

// The shards of a block are as heavy as each other; dealt out one by one, every home and guest
// would need keys of all shards.
TEST(BalancedPlacer, GivesAWorkerRowsOfFewShards) {
  PlanOptions options = qwen_options(8);
  options.head_shards = 8;
  std::vector<PackedSequence> sequences(7, {1 << 18, std::vector<std::int64_t>(64, 4096)});
  sequences.insert(sequences.begin(), {1 << 18, {1 << 18}});
  const PoolPlan plan = make_plan(options, sequences);
  std::vector<std::int64_t> shards(at(plan.workers()), 0);
  for (const KvFetch& fetch : plan.exchange.fetches) shards[at(fetch.destination)] += 1;
  // The homes of the document's first rows keep them all.
  EXPECT_LE(*std::max_element(shards.begin() + 4, shards.end()), 3);
  EXPECT_LT(std::accumulate(shards.begin(), shards.end(), std::int64_t{0}), 2 * plan.workers());
}

TEST(BalancedPlacer, SearchesWithoutBreakingTheCapOrAddingBytes) {
  int improved = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed);
    options.placer = PlacerKind::kBalanced;
    options.inter_node_weight = 0;
    options.max_tile_pairs = kNeverCut;
    options.search_us = 0;
    const PoolPlan plan = make_plan(options, sequences);
    options.search_us = 200;
    const PoolPlan searched = make_plan(options, sequences);
    EXPECT_LE(forward_bytes(searched), forward_bytes(plan));
    EXPECT_LE(searched.placement.heaviest(),
              std::max(plan.placement.heaviest(), plan.placement.cap));
    improved += forward_bytes(searched) < forward_bytes(plan) ? 1 : 0;
  }
  EXPECT_GT(improved, 50);
}

}  // namespace
}  // namespace libra
