#include "libra/plan/pool_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Costs = std::vector<std::int64_t>;

struct RandomWindow {
  Costs costs;
  std::int32_t pool_size = 1;
};

// Few distinct costs, so that ties are common; now and then one sequence outweighs all others.
RandomWindow random_window(std::uint64_t seed) {
  Rng rng(seed);
  RandomWindow window;
  window.pool_size = static_cast<std::int32_t>(1 + rng.below(8));
  const std::uint64_t pools = 1 + rng.below(9);
  const std::uint64_t distinct = 1 + rng.below(50);
  for (std::uint64_t i = 0; i < pools * static_cast<std::uint64_t>(window.pool_size); ++i)
    window.costs.push_back(static_cast<std::int64_t>(rng.below(distinct)));
  if (rng.below(3) == 0) window.costs[rng.below(window.costs.size())] = 10'000;
  return window;
}

std::vector<std::int64_t> loads_of(const Costs& costs, const PoolAssignment& assignment) {
  std::vector<std::int64_t> loads;
  for (std::int32_t k = 0; k < assignment.pools(); ++k) {
    std::int64_t load = 0;
    for (const std::int32_t sequence : assignment.pool(k)) load += costs[at(sequence)];
    loads.push_back(load);
  }
  return loads;
}

// Algorithm 1 as one reads it: repeatedly the heaviest sequence left, to the least-loaded pool with
// room, both found by looking at all of them.
std::vector<std::vector<std::int32_t>> naive_vrsp(const Costs& costs, std::int32_t pool_size) {
  std::vector<std::vector<std::int32_t>> pools(costs.size() / at(pool_size));
  Costs loads(pools.size(), 0);
  std::vector<bool> placed(costs.size(), false);
  for (std::size_t step = 0; step < costs.size(); ++step) {
    std::size_t heaviest = costs.size();
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (!placed[i] && (heaviest == costs.size() || costs[i] > costs[heaviest])) heaviest = i;
    }
    std::size_t lightest = pools.size();
    for (std::size_t k = 0; k < pools.size(); ++k) {
      if (pools[k].size() < at(pool_size) &&
          (lightest == pools.size() || loads[k] < loads[lightest]))
        lightest = k;
    }
    placed[heaviest] = true;
    pools[lightest].push_back(static_cast<std::int32_t>(heaviest));
    loads[lightest] += costs[heaviest];
  }
  return pools;
}

TEST(PoolAssignment, EveryGroupingPutsEachSequenceIntoOnePoolOfExactlyP) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomWindow window = random_window(seed);
    for (const Grouping grouping : kGroupings) {
      SCOPED_TRACE(grouping_name(grouping));
      const PoolAssignment assignment = assign_pools(window.costs, window.pool_size, grouping);
      EXPECT_EQ(assignment.pool_size, window.pool_size);
      EXPECT_EQ(at(assignment.pools()) * at(window.pool_size), window.costs.size());
      std::vector<std::int32_t> sequences = assignment.order;
      std::sort(sequences.begin(), sequences.end());
      std::vector<std::int32_t> all(window.costs.size());
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(sequences, all);
      EXPECT_EQ(assign_pools(window.costs, window.pool_size, grouping).order, assignment.order);
    }
  }
}

TEST(PoolAssignment, VrspIsAlgorithm1) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomWindow window = random_window(seed);
    const PoolAssignment found = assign_pools(window.costs, window.pool_size, Grouping::kVrsp);
    const auto expected = naive_vrsp(window.costs, window.pool_size);
    for (std::int32_t k = 0; k < found.pools(); ++k) {
      ASSERT_TRUE(std::equal(found.pool(k).begin(), found.pool(k).end(), expected[at(k)].begin(),
                             expected[at(k)].end()))
          << "pool " << k;
    }
  }
}

TEST(PoolAssignment, VrspOfTheHeaderExample) {
  const PoolAssignment assignment = assign_pools(Costs{9, 1, 8, 2, 7, 3}, 2, Grouping::kVrsp);
  EXPECT_THAT(assignment.order, ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(PoolAssignment, TiesGoToTheLowerIndex) {
  const PoolAssignment assignment = assign_pools(Costs{5, 5, 5, 5, 5, 5}, 2, Grouping::kVrsp);
  EXPECT_THAT(assignment.order, ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST(PoolAssignment, OutlierPoolReceivesOnlyLightSequences) {
  // The outlier outweighs all others together, so its pool takes part again only when every other
  // pool is full: what is left then are the lightest.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    constexpr std::int32_t kPoolSize = 4;
    Costs costs;
    for (int i = 0; i < 32; ++i) costs.push_back(static_cast<std::int64_t>(1 + rng.below(100)));
    const std::size_t outlier = rng.below(costs.size());
    costs[outlier] = 10'000;
    const PoolAssignment assignment = assign_pools(costs, kPoolSize, Grouping::kVrsp);
    Costs companions;
    const auto pool = assignment.pool(0);
    ASSERT_EQ(at(pool[0]), outlier);
    for (const std::int32_t sequence : pool.subspan(1)) companions.push_back(costs[at(sequence)]);
    Costs sorted = costs;
    std::sort(sorted.begin(), sorted.end());
    std::sort(companions.begin(), companions.end());
    EXPECT_THAT(companions, ElementsAre(sorted[0], sorted[1], sorted[2]));
  }
}

TEST(PoolAssignment, ProductionKeepsTheOrderOfTheWindow) {
  EXPECT_THAT(assign_pools(Costs{9, 1, 8, 2}, 2, Grouping::kProduction).order,
              ElementsAre(0, 1, 2, 3));
}

TEST(PoolAssignment, ZigzagDealsInSnakeOrder) {
  // Sorted: 9 8 7 3 2 1; dealt to pools 0 1 2, 2 1 0.
  EXPECT_THAT(assign_pools(Costs{9, 1, 8, 2, 7, 3}, 2, Grouping::kZigzag).order,
              ElementsAre(0, 1, 2, 3, 4, 5));
  // Pools of 3, sorted 6 5 4 3 2 1: pool 0 has 6 3 2, pool 1 has 5 4 1.
  EXPECT_THAT(assign_pools(Costs{1, 2, 3, 4, 5, 6}, 3, Grouping::kZigzag).order,
              ElementsAre(5, 2, 1, 4, 3, 0));
}

TEST(PoolAssignment, SwapNeverRaisesTheImbalanceOfZigzag) {
  bool ever_lowered = false;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomWindow window = random_window(seed);
    const Costs before =
        loads_of(window.costs, assign_pools(window.costs, window.pool_size, Grouping::kZigzag));
    const Costs after =
        loads_of(window.costs, assign_pools(window.costs, window.pool_size, Grouping::kZigzagSwap));
    const std::int64_t heaviest_before = *std::max_element(before.begin(), before.end());
    const std::int64_t heaviest_after = *std::max_element(after.begin(), after.end());
    ASSERT_LE(heaviest_after, heaviest_before);
    ever_lowered = ever_lowered || heaviest_after < heaviest_before;
  }
  EXPECT_TRUE(ever_lowered);
}

// No exchange of the heaviest pool with any other makes both lighter than it is.
TEST(PoolAssignment, RefinedVrspIsNeverLessEvenAndEndsWhenNoExchangeHelps) {
  int lowered = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomWindow window = random_window(seed);
    const PoolAssignment found =
        assign_pools(window.costs, window.pool_size, Grouping::kVrspRefined);
    const double before =
        imbalance(window.costs, assign_pools(window.costs, window.pool_size, Grouping::kVrsp));
    ASSERT_LE(imbalance(window.costs, found), before);
    lowered += imbalance(window.costs, found) < before ? 1 : 0;
    const Costs loads = loads_of(window.costs, found);
    const auto heavy = std::max_element(loads.begin(), loads.end()) - loads.begin();
    for (std::int32_t pool = 0; pool < found.pools(); ++pool) {
      for (const std::int32_t a : found.pool(static_cast<std::int32_t>(heavy))) {
        for (const std::int32_t b : found.pool(pool)) {
          const std::int64_t moved = window.costs[at(a)] - window.costs[at(b)];
          if (pool == heavy) continue;
          EXPECT_GE(std::max(loads[at(heavy)] - moved, loads[at(pool)] + moved), loads[at(heavy)]);
        }
      }
    }
  }
  EXPECT_GT(lowered, 100);
}

TEST(PoolAssignment, SwapEndsWhenNoExchangeHelps) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomWindow window = random_window(seed);
    const PoolAssignment found =
        assign_pools(window.costs, window.pool_size, Grouping::kZigzagSwap);
    const Costs loads = loads_of(window.costs, found);
    const auto heavy = std::max_element(loads.begin(), loads.end()) - loads.begin();
    const auto light = std::min_element(loads.begin(), loads.end()) - loads.begin();
    for (const std::int32_t a : found.pool(static_cast<std::int32_t>(heavy))) {
      for (const std::int32_t b : found.pool(static_cast<std::int32_t>(light))) {
        const std::int64_t moved = window.costs[at(a)] - window.costs[at(b)];
        EXPECT_GE(std::max(loads[at(heavy)] - moved, loads[at(light)] + moved), loads[at(heavy)]);
      }
    }
  }
}

TEST(PoolAssignment, ImbalanceIsHeaviestOverMean) {
  const Costs costs{6, 2, 1, 3};
  EXPECT_DOUBLE_EQ(imbalance(costs, assign_pools(costs, 2, Grouping::kProduction)), 8.0 / 6.0);
  EXPECT_DOUBLE_EQ(imbalance(Costs{0, 0}, assign_pools(Costs{0, 0}, 1, Grouping::kVrsp)), 1.0);
  EXPECT_DOUBLE_EQ(imbalance(Costs{}, assign_pools(Costs{}, 1, Grouping::kVrsp)), 1.0);
}

TEST(PoolAssignment, ByLoadKeepsThePoolsAndPutsLikeOnesTogether) {
  const Costs costs{1, 2, 9, 9, 3, 1, 8, 8};
  const PoolAssignment emitted = assign_pools(costs, 2, Grouping::kProduction);
  const PoolAssignment ordered = by_load(costs, emitted);
  EXPECT_THAT(ordered.order, ElementsAre(2, 3, 6, 7, 4, 5, 0, 1));
  EXPECT_DOUBLE_EQ(imbalance_by_index(costs, emitted, 2), 17 / 10.25);
  EXPECT_DOUBLE_EQ(imbalance_by_index(costs, ordered, 2), 11 / 10.25);
}

TEST(PoolAssignment, NoOrderOfThePoolsBeatsByLoad) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    Costs costs;
    for (int i = 0; i < 6; ++i) costs.push_back(static_cast<std::int64_t>(rng.below(20)));
    PoolAssignment order{1, {0, 1, 2, 3, 4, 5}};
    double best = imbalance(costs, order);
    do best = std::min(best, imbalance_by_index(costs, order, 2));
    while (std::next_permutation(order.order.begin(), order.order.end()));
    EXPECT_DOUBLE_EQ(imbalance_by_index(costs, by_load(costs, order), 2), best);
  }
}

TEST(PoolAssignment, ImbalanceByIndexIsOfTheWholeStepWhereAllPoolsRunAtOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomWindow window = random_window(seed);
    const PoolAssignment pools = assign_pools(window.costs, window.pool_size, Grouping::kVrsp);
    EXPECT_DOUBLE_EQ(imbalance_by_index(window.costs, pools, pools.pools()),
                     imbalance(window.costs, pools));
    EXPECT_LE(imbalance_by_index(window.costs, pools, 1), imbalance(window.costs, pools));
  }
}

TEST(PoolAssignment, NamesAreParsed) {
  for (const Grouping grouping : kGroupings)
    EXPECT_EQ(parse_grouping(grouping_name(grouping)), grouping);
  EXPECT_THROW(parse_grouping("fair"), ConfigError);
}

TEST(PoolAssignment, SequenceCostCountsPairsOfEachSampleAlone) {
  EXPECT_EQ(sequence_cost({100, {0, 1, 3, 10}}), 0 + 1 + 6 + 55);
  EXPECT_EQ(sequence_cost({1 << 20, {1 << 20}}), (std::int64_t{1} << 39) + (1 << 19));
}

TEST(PoolSlots, Gbs16Dp8PoolsOf2GiveEightPoolsFourAtOnce) {
  check_window(16, 8, 2);
  const PoolAssignment assignment = assign_pools(Costs(16, 1), 2, Grouping::kVrsp);
  ASSERT_EQ(assignment.pools(), 8);
  std::vector<std::pair<std::int32_t, std::int32_t>> slots;
  for (std::int32_t k = 0; k < 8; ++k) {
    const PoolSlot slot = pool_slot(k, 8, 2);
    slots.emplace_back(slot.ga_index, slot.group);
  }
  using Slot = std::pair<std::int32_t, std::int32_t>;
  EXPECT_THAT(slots, ElementsAre(Slot(0, 0), Slot(0, 1), Slot(0, 2), Slot(0, 3), Slot(1, 0),
                                 Slot(1, 1), Slot(1, 2), Slot(1, 3)));
}

std::string window_error(std::int64_t gbs, std::int64_t dp, std::int64_t pool_size) {
  try {
    check_window(gbs, dp, pool_size);
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(WindowRules, ErrorsNameTheNearestLegalValues) {
  EXPECT_EQ(window_error(128, 32, 8), "accepted");
  EXPECT_THAT(window_error(16, 8, 3), HasSubstr("2 or 4"));
  EXPECT_THAT(window_error(16, 8, 16), HasSubstr("nearest legal value 8"));
  EXPECT_THAT(window_error(20, 8, 2), HasSubstr("5 or 10"));
  EXPECT_THAT(window_error(0, 8, 2), HasSubstr("GBS is 0"));
  EXPECT_THAT(window_error(16, -8, 2), HasSubstr("DP is -8"));
  EXPECT_THAT(window_error(16, 8, 0), HasSubstr("P is 0"));
}

TEST(WindowRules, AnIncompletePoolIsAnErrorAndNotDropped) {
  EXPECT_THROW(assign_pools(Costs(7, 1), 2, Grouping::kVrsp), ConfigError);
  EXPECT_THROW(assign_pools(Costs(7, 1), 0, Grouping::kVrsp), ConfigError);
}

}  // namespace
}  // namespace libra
