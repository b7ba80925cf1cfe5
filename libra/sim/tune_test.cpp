#include "libra/sim/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "libra/base/error.h"
#include "libra/plan/plan_options.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

// 16 GPUs: two nodes of 8. One sequence in four is a single sample, the others are short ones.
Scenario small_job() {
  Scenario scenario;
  scenario.model = find_model("qwen3-8b");
  scenario.linear = find_linear_shape("qwen3-8b");
  scenario.cluster = load_cluster("hgx-h200");
  scenario.cluster.step_variation = 0;
  scenario.seq_tokens = 65536;
  scenario.gbs = 16;
  scenario.dp = 8;
  scenario.pool = 1;
  scenario.plan.shape = scenario.model.attention;
  scenario.plan.cp = 2;
  return scenario;
}

std::vector<std::vector<PackedSequence>> skewed_windows(std::size_t count) {
  std::vector<PackedSequence> window;
  for (int i = 0; i < 16; ++i) {
    const std::int64_t tokens = i % 4 == 0 ? 65536 : 1024;
    window.push_back(
        {65536, std::vector<std::int64_t>(static_cast<std::size_t>(65536 / tokens), tokens)});
  }
  return std::vector<std::vector<PackedSequence>>(count, window);
}

TuneOptions with_threads(int threads) {
  TuneOptions options;
  options.threads = threads;
  return options;
}

TuneOptions with_cap(double bytes) {
  TuneOptions options;
  options.memory_cap_bytes = bytes;
  return options;
}

TuneOptions wanting(double r_minus_1) {
  TuneOptions options;
  options.wanted_r_minus_1 = r_minus_1;
  return options;
}

TEST(Tune, RanksTheFastestFirstAndSaysHowFarBehindOthersAre) {
  const TuneResult result = tune(small_job(), skewed_windows(3), {});
  ASSERT_GT(result.ranked.size(), 1u);
  for (std::size_t i = 1; i < result.ranked.size(); ++i) {
    EXPECT_GE(result.ranked[i].step_s, result.ranked[i - 1].step_s);
  }
  EXPECT_EQ(result.ranked.front().behind, 0);
  EXPECT_GT(result.ranked.front().candidate.pool, 1);  // pools pay here
  EXPECT_EQ(result.ranked.front().step_seconds.size(), 3u);
  EXPECT_NEAR(result.ranked.front().behind_error, 0, 1e-12);
}

// The first windows are nearly even, and pools that span nodes of two GPUs cost more than they
// bring; in the others they pay.
TEST(Tune, LooksBeyondTheFirstWindows) {
  Scenario scenario = small_job();
  scenario.cluster.gpus_per_node = 2;
  std::vector<PackedSequence> even;
  even.reserve(16);
  for (int i = 0; i < 16; ++i) even.push_back({65536, {i % 2 == 0 ? 65536 : 61440}});
  EXPECT_EQ(tune(scenario, {even}, {}).ranked.front().candidate.pool, 1);
  std::vector<std::vector<PackedSequence>> windows = skewed_windows(6);
  windows.insert(windows.begin(), 3, even);
  EXPECT_GT(tune(scenario, windows, {}).ranked.front().candidate.pool, 1);
}

TEST(Tune, FindsNothingBetterThanWhatItsSimulatorSays) {
  const Scenario scenario = small_job();
  const TuneResult result = tune(scenario, skewed_windows(2), {});
  const Environment environment(with_candidate(scenario, result.ranked.front().candidate));
  const Simulation again = simulate(environment, skewed_windows(2), {&find_method("libra")}, {});
  EXPECT_DOUBLE_EQ(again.methods[0].step_s, result.ranked.front().step_s);
  EXPECT_DOUBLE_EQ(again.methods[0].memory_bytes, result.ranked.front().memory_bytes);
}

TEST(Tune, IsTheSameOnAnyNumberOfThreads) {
  const TuneResult one = tune(small_job(), skewed_windows(2), with_threads(1));
  const TuneResult three = tune(small_job(), skewed_windows(2), with_threads(3));
  EXPECT_EQ(one.ranked.front().candidate, three.ranked.front().candidate);
  EXPECT_EQ(one.candidates, three.candidates);
}

TEST(Tune, KeepsTheMemoryCap) {
  const TuneResult free = tune(small_job(), skewed_windows(1), {});
  const double cap = free.ranked.front().memory_bytes - 1;
  const TuneResult capped = tune(small_job(), skewed_windows(1), with_cap(cap));
  for (const Verdict& verdict : capped.ranked) EXPECT_LE(verdict.memory_bytes, cap);
  EXPECT_GT(capped.over_cap, 0);
}

TEST(Tune, SaysWhatWouldFitIfNothingDoes) {
  try {
    tune(small_job(), skewed_windows(1), with_cap(1e9));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nothing fits into 1.00 GB a GPU: the least"));
  }
}

// Four of 16 sequences hold almost all work: P must be 4 for R - 1 near 0.
TEST(Tune, SaysWhichPoolTheCorpusNeeds) {
  const TuneResult result = tune(small_job(), skewed_windows(1), wanting(0.01));
  EXPECT_EQ(result.needed_pool, 4);
  EXPECT_NEAR(result.heaviest_over_mean, 3.82, 0.05);
  EXPECT_EQ(tune(small_job(), skewed_windows(1), wanting(10)).needed_pool, 1);
}

// A worker holds 1024 tokens, less than the smallest block that is tried otherwise.
TEST(Tune, TakesShortSharesAsBlocks) {
  Scenario scenario = small_job();
  scenario.seq_tokens = 2048;
  const std::vector<PackedSequence> window(16, {2048, {2048}});
  const TuneResult result = tune(scenario, {window}, {});
  for (const Verdict& verdict : result.ranked) EXPECT_EQ(verdict.candidate.block_tokens, 1024);
}

TEST(Tune, SaysSoIfThereIsNothingToChooseFrom) {
  Scenario scenario = small_job();
  scenario.seq_tokens = 1;
  const std::vector<PackedSequence> window(16, {1, {1}});
  try {
    tune(scenario, {window}, {});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("nothing to choose from"));
  }
}

// With one GA index a pool of all replicas is the only one that holds the whole window.
TEST(Tune, TriesOnePoolForTheWholeWindow) {
  Scenario scenario = small_job();
  scenario.gbs = 2;
  scenario.dp = 2;
  const std::vector<PackedSequence> window = {{65536, {65536}},
                                              {65536, std::vector<std::int64_t>(64, 1024)}};
  const TuneResult result = tune(scenario, {window}, {});
  EXPECT_EQ(result.ranked.front().candidate.pool, 2);
  EXPECT_EQ(result.evenness.back().pool, 2);
  EXPECT_EQ(result.evenness.back().r_minus_1, 0);
}

TEST(Tune, TriesPoolsThatAreNoPowerOfTwo) {
  Scenario scenario = small_job();
  scenario.gbs = 6;
  scenario.dp = 3;
  std::vector<PackedSequence> window = skewed_windows(1).front();
  window.resize(6);
  const TuneResult result = tune(scenario, {window}, {});
  EXPECT_EQ(result.evenness[2].pool, 3);
  EXPECT_EQ(result.ranked.front().candidate.pool, 3);
}

TEST(Tune, ReportsProgress) {
  std::atomic<std::int64_t> last = 0;
  TuneOptions options;
  options.threads = 1;
  options.advance = [&last](std::int64_t done, std::int64_t total) {
    EXPECT_LE(done, total);
    last = total - done;
  };
  tune(small_job(), skewed_windows(1), options);
  EXPECT_EQ(last, 0);
}

TEST(CandidateOptions, CanBePasted) {
  EXPECT_EQ(candidate_options({8, 4096, 2, 4, 30'000, PlacerKind::kBalanced, HomeKind::kZigzagRow}),
            "--pool 8 --block 4K --head-shards 2 --chunks 4 --tau 0.03 --placer balanced --home "
            "zigzag-row");
}

}  // namespace
}  // namespace libra
