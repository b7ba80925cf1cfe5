#include "libra/sim/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/random_plans.h"
#include "libra/sim/tiny_scenario.h"

namespace libra {
namespace {

using testing::flat_device;
using testing::kMicrosecond;
using testing::kNanosecond;
using testing::sequence;
using testing::tiny_scenario;
using Window = std::vector<PackedSequence>;

// 36, 8, 20 and 12 pairs.
Window small_window() {
  return {sequence({8}), sequence({1, 1, 1, 1, 1, 1, 1, 1}), sequence({4, 4}),
          sequence({2, 2, 2, 2})};
}

std::vector<std::vector<PoolTimes>> times_of(const Scenario& scenario, const char* name,
                                             const Window& window) {
  const Environment environment(scenario, flat_device());
  const Method& method = find_method(name);
  const Window slots = Arranger(scenario, method).arrange(window);
  return window_times(environment, method, slots, 0);
}

// Slowest worker, forward and backward, by GA index, in microseconds.
std::vector<double> stragglers(const std::vector<std::vector<PoolTimes>>& times) {
  std::vector<double> slowest;
  for (const auto& pools : times) {
    slowest.push_back(0);
    for (const PoolTimes& pool : pools) {
      for (const WorkerTimes& worker : pool.workers) {
        slowest.back() = std::max(slowest.back(), worker.total() / kMicrosecond);
      }
    }
  }
  return slowest;
}

constexpr double kNs = kNanosecond / kMicrosecond;

struct Expected {
  const char* method;
  double first;  // straggler of GA index 0 and 1: computation in us, communication in ns
  double first_ns;
  double second;
  double second_ns;
};

// 3.5 us for each pair of one head, forward and backward. K and V of a row have 16 bytes, their
// gradients 32, Q and O 8.
constexpr Expected kExpected[] = {
    // Rank 1 has rows 4 to 7 of {8}: 26 pairs, and fetches the other 4 rows: 64 + 128 bytes.
    {"none", 2 * 26 * 3.5, 192, 2 * 10 * 3.5, 0},
    // One head of all rows. Forward 4 rows of Q, K, V in (48 bytes), O out (16); backward dO in
    // (16), dQ, dK, dV out (80).
    {"ulysses", 36 * 3.5, 160, 20 * 3.5, 160},
    // By work: {8} and {4, 4}, then the light ones.
    {"sorted", 36 * 3.5, 160, 12 * 3.5, 160},
    {"ring-zigzag", 36 * 3.5, 0, 20 * 3.5, 0},
    // No row pair of {8} (9 pairs) fits into what the others lack (7): 18 pairs of two heads. Each
    // of its two workers gets the other's K and V: of 64 bytes half before the computation, of 128
    // bytes of gradients half after it. Then 10 pairs against a mean of 8, which is 2: no row pair
    // of {4, 4} (5 pairs) fits, and no document lies on two workers.
    {"distca", 2 * 18 * 3.5, 32 + 64, 2 * 10 * 3.5, 0},
    {"ideal", 2 * 76 * 3.5 / 8, 0, 2 * 76 * 3.5 / 8, 0},
};

TEST(WindowTimes, AreWhatTheHandComputes) {
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(expected.method);
    const std::vector<double> slowest =
        stragglers(times_of(tiny_scenario(), expected.method, small_window()));
    ASSERT_EQ(slowest.size(), 2u);
    EXPECT_NEAR(slowest[0], expected.first + expected.first_ns * kNs, 1e-9);
    EXPECT_NEAR(slowest[1], expected.second + expected.second_ns * kNs, 1e-9);
  }
}

// {8} beside an empty replica, twice. Where tiles move, the four blocks of two rows (3, 7, 11 and
// 15 pairs) go to worker 3, 2, 1 and 0 (TapBalancesWhatUlyssesCannot): worker 0, which computes 15
// pairs and sends most, is the straggler.
//   Whole groups: it sends 32 bytes of Q and its 4 rows of K and V to three others, 224 bytes in
//   all; O comes back with 32. Backward 32 of dO, then 32 of dQ and 3 x 128 of fp32 dK and dV.
//   Ours fetches prefixes, of 2, 4 and 4 rows of K and V: with Q 192 bytes in all, and 320 of dK
//   and dV.
// Overlapped in two chunks, half of each is exposed.
constexpr Expected kExpectedOfOutliers[] = {
    {"libra-paper-tap", 2 * 15 * 3.5, 224 + 32 + 32 + 416, 2 * 15 * 3.5, 224 + 32 + 32 + 416},
    {"libra-paper-tap-vrsp", 2 * 15 * 3.5, 704, 2 * 15 * 3.5, 704},
    {"libra-paper", 2 * 15 * 3.5, 352, 2 * 15 * 3.5, 352},
    {"distca-emulated", 2 * 15 * 3.5, 352, 2 * 15 * 3.5, 352},
    {"libra-tap", 2 * 15 * 3.5, 192 + 32 + 32 + 352, 2 * 15 * 3.5, 192 + 32 + 32 + 352},
    {"libra-tap-vrsp", 2 * 15 * 3.5, 608, 2 * 15 * 3.5, 608},
    {"libra", 2 * 15 * 3.5, 304, 2 * 15 * 3.5, 304},
    // DistcaOverlapsTwoHalves; the tolerance does not matter where a row pair is all that is
    // needed.
    {"distca", 2 * 9 * 3.5, 104 + 8 + 8 + 200, 2 * 9 * 3.5, 320},
    {"distca-tight", 2 * 9 * 3.5, 320, 2 * 9 * 3.5, 320},
    // Both outliers at GA index 0: a gather of 64 bytes, and backward again and 128 of gradients.
    {"wlb-repack", 36 * 3.5, 64 + 64 + 128, 0, 0},
    // Both wait for two more.
    {"wlb", 0, 0, 0, 0},
};

TEST(WindowTimes, OfOutliersAreWhatTheHandComputes) {
  const Window window = {sequence({8}), sequence({}), sequence({8}), sequence({})};
  for (const Expected& expected : kExpectedOfOutliers) {
    SCOPED_TRACE(expected.method);
    const std::vector<double> slowest =
        stragglers(times_of(tiny_scenario(), expected.method, window));
    ASSERT_EQ(slowest.size(), 2u);
    EXPECT_NEAR(slowest[0], expected.first + expected.first_ns * kNs, 1e-9);
    EXPECT_NEAR(slowest[1], expected.second + expected.second_ns * kNs, 1e-9);
  }
}

// Nothing to exchange and nothing to balance: every pooled method computes what is at home. Four
// blocks of two rows: worker 0 and 1 have one sample each.
TEST(WindowTimes, PooledMethodsLeaveABalancedPoolAlone) {
  const Window window(4, sequence({4, 4}));
  for (const char* const name : {"libra-tap", "libra-tap-vrsp", "libra", "libra-paper-tap",
                                 "libra-paper-tap-vrsp", "libra-paper", "distca-emulated"}) {
    Scenario scenario = tiny_scenario();
    scenario.plan.block_tokens = 4;
    const std::vector<double> slowest = stragglers(times_of(scenario, name, window));
    EXPECT_NEAR(slowest[0], 2 * 10 * 3.5, 1e-9) << name;
    EXPECT_NEAR(slowest[1], 2 * 10 * 3.5, 1e-9) << name;
  }
}

// {8} beside an empty replica, blocks of two rows (3, 7, 11 and 15 pairs): the mean of the four
// workers is 9 pairs. Heaviest first, 15 fits nowhere and goes to the least loaded worker 0; then
// 11 fits only nowhere either (9 x 1.03), so to worker 1, its home; 7 to worker 2, 3 to worker 3.
TEST(WindowTimes, TapBalancesWhatUlyssesCannot) {
  const Window window = {sequence({8}), sequence({}), sequence({8}), sequence({})};
  const auto pairs_of = [&](const char* name) {
    const auto times = times_of(tiny_scenario(), name, window);
    std::vector<double> pairs;
    for (const WorkerTimes& worker : times[0][0].workers) {
      pairs.push_back(worker.forward_compute / kMicrosecond / 2);
    }
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  };
  EXPECT_THAT(pairs_of("libra-paper-tap"),
              ::testing::Pointwise(::testing::DoubleNear(1e-9), {3.0, 7.0, 11.0, 15.0}));
  // With these links ours has no reason to look for another.
  EXPECT_THAT(pairs_of("libra-tap"),
              ::testing::Pointwise(::testing::DoubleNear(1e-9), {3.0, 7.0, 11.0, 15.0}));
}

// VRSP pairs the heaviest with the lightest: {36, 8} and {20, 12}.
TEST(Arranger, VrspPutsHeavyAndLightIntoOnePool) {
  Scenario scenario = tiny_scenario();
  const Window slots = Arranger(scenario, find_method("libra")).arrange(small_window());
  EXPECT_EQ(slots[0], sequence({8}));
  EXPECT_EQ(slots[1], sequence({1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(slots[2], sequence({4, 4}));
  EXPECT_EQ(slots[3], sequence({2, 2, 2, 2}));
}

// {8} and one {4} have most work; the bins fill to like work: 8 | 4 2 | 4 2 | 2 2 1 ... .
TEST(Arranger, WlbRepackKeepsTheSamplesOfTheWindow) {
  const Window slots = Arranger(tiny_scenario(), find_method("wlb-repack")).arrange(small_window());
  std::multiset<std::int64_t> before;
  std::multiset<std::int64_t> after;
  for (const PackedSequence& s : small_window()) {
    before.insert(s.sample_tokens.begin(), s.sample_tokens.end());
  }
  for (const PackedSequence& s : slots) {
    after.insert(s.sample_tokens.begin(), s.sample_tokens.end());
  }
  EXPECT_EQ(after, before);
  EXPECT_EQ(slots[0].sample_tokens.front(), 8);
}

// An outlier that moves: worker 2 and 3 have nothing, so each gets one row pair (9 pairs) of {8}.
// Two halves of 9 us each. Worker 0 and 1 send 16 bytes of Q to one of them and their half of K and
// V (64 bytes) to all others: half of 208 bytes before; half of 16 bytes of O after. Backward half
// of 16 bytes of dO, then half of 16 bytes of dQ and of 128 bytes of fp32 dK and dV from all
// others.
TEST(WindowTimes, DistcaOverlapsTwoHalves) {
  const Window window = {sequence({8}), sequence({}), sequence({8}), sequence({})};
  const auto times = times_of(tiny_scenario(), "distca", window);
  for (const WorkerTimes& worker : times[0][0].workers) {
    EXPECT_NEAR(worker.forward_compute, 18 * kMicrosecond, 1e-15);
  }
  const WorkerTimes& receiver = times[0][0].workers[2];
  EXPECT_NEAR(receiver.forward, 18 * kMicrosecond + (104 + 8) * kNanosecond, 1e-15);
  EXPECT_NEAR(receiver.backward, 45 * kMicrosecond + (8 + 8 + 192) * kNanosecond, 1e-15);
  // Two rows of Q, O, dO and dQ, eight of K, V and their gradients.
  EXPECT_EQ(times[0][0].extra_memory_bytes, 2 * 4 * 8 + 8 * (16 + 32));
}

TEST(WindowTimes, AllStepEquivalentMethodsDoTheSameWork) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Rng rng(seed);
    Window window;
    for (int i = 0; i < 4; ++i) window.push_back(testing::random_sequence(rng, 100));
    for (PackedSequence& s : window) s.tokens = 150;
    Scenario scenario = tiny_scenario();
    scenario.seq_tokens = 150;
    std::set<std::int64_t> work;
    for (const Method& method : known_methods()) {
      if (!method.step_equivalent) continue;
      std::int64_t sum = 0;
      for (const auto& pools : times_of(scenario, std::string(method.name).c_str(), window)) {
        for (const PoolTimes& pool : pools) sum += pool.work;
      }
      work.insert(sum);
    }
    EXPECT_EQ(work.size(), 1u);
  }
}

// With one replica there is nothing to pool: P is 1, whatever was wished for.
TEST(WindowTimes, OneReplicaMakesEveryPooledMethodItsOwnPoolOfOne) {
  Scenario scenario = tiny_scenario();
  scenario.dp = 1;
  scenario.pool = largest_pool(1, 8);
  EXPECT_EQ(scenario.pool, 1);
  const auto vrsp = stragglers(times_of(scenario, "libra-tap-vrsp", small_window()));
  const auto production = stragglers(times_of(scenario, "libra-tap", small_window()));
  EXPECT_THAT(vrsp, ::testing::UnorderedElementsAreArray(production));
}

// Each sequence's stragglers are those of a pool of its own, whatever replicas stand beside it.
TEST(WindowTimes, OneReplicaIsAsPoolsOfOne) {
  Scenario alone = tiny_scenario();
  alone.dp = 1;
  alone.pool = 1;
  Scenario beside = tiny_scenario();
  beside.pool = 1;
  const auto by_pool = [](const std::vector<std::vector<PoolTimes>>& times) {
    std::multiset<double> stragglers;
    for (const auto& pools : times) {
      for (const PoolTimes& pool : pools) {
        double slowest = 0;
        for (const WorkerTimes& worker : pool.workers) slowest = std::max(slowest, worker.total());
        stragglers.insert(slowest);
      }
    }
    return stragglers;
  };
  for (const char* const name : {"libra-tap", "libra-tap-vrsp", "libra", "libra-paper-tap",
                                 "libra-paper-tap-vrsp", "libra-paper"}) {
    EXPECT_EQ(by_pool(times_of(alone, name, small_window())),
              by_pool(times_of(beside, name, small_window())))
        << name;
  }
}

TEST(PlanOptionsOf, UlyssesNeedsHeadsForEveryRank) {
  Scenario scenario = tiny_scenario();
  scenario.plan.cp = 4;
  EXPECT_THROW(plan_options(scenario, find_method("ulysses")), ConfigError);
}

TEST(PlanOptionsOf, FaithfulMethodsRunThePapersSystem) {
  Scenario scenario = tiny_scenario();
  scenario.plan.shape = {8, 8, 2, 2};
  const PlanOptions options = plan_options(scenario, find_method("libra-paper"));
  EXPECT_EQ(options.placer, PlacerKind::kPaper);
  EXPECT_EQ(options.fetch, Fetch::kWhole);
  EXPECT_FALSE(options.local_first);
  EXPECT_EQ(options.chunks, 4) << "as in the paper";
  EXPECT_EQ(plan_options(scenario, find_method("distca-emulated")).chunks, 4);
  EXPECT_EQ(plan_options(scenario, find_method("libra-paper-tap")).chunks, 1);
  EXPECT_EQ(plan_options(scenario, find_method("libra")).chunks, 2) << "as given";
}

TEST(FindMethod, ListsTheNamesWhenAskedForAnother) {
  try {
    find_method("zeppelin");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr("'zeppelin' is not a method: use one of none, "));
  }
}

}  // namespace
}  // namespace libra
