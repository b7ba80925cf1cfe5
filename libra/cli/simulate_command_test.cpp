// libra simulate, tune and paper, as a user runs them.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "libra/base/error.h"
#include "libra/cli/sim_options.h"
#include "libra/cli/test_program.h"
#include "libra/sim/methods.h"

namespace libra::cli {
namespace {

using ::testing::HasSubstr;

// DP 4 on 8 GPUs: two GA indices of four sequences.
std::string job() {
  return "--corpus " + mix() +
         " --seq-len 64K --oversize split --gpus 8 --cp 2 --gbs 8 --steps 2 --layers 4";
}

TEST(SimulateCommand, NamesEveryMethodAskedForWithItsFigures) {
  const nlohmann::json json = json_of("simulate --methods ulysses,libra,libra-paper " + job());
  ASSERT_EQ(json["methods"].size(), 3u);
  for (const char* const field :
       {"straggler_mean_ms", "straggler_max_ms", "speedup_mean_vs_ulysses",
        "speedup_max_vs_ulysses", "tokens_per_gpu_s", "exposed_comm_ms", "bytes_total"}) {
    EXPECT_TRUE(json["methods"]["libra"][field].is_number()) << field;
  }
  EXPECT_EQ(json["methods"]["ulysses"]["speedup_mean_vs_ulysses"], 1.0);
  EXPECT_EQ(json["dp"], 4);
  EXPECT_EQ(json["pool"], 4);  // min(8, DP)
}

TEST(SimulateCommand, RunsAllMethodsUnlessSomeAreNamed) {
  EXPECT_EQ(json_of("simulate " + job())["methods"].size(), known_methods().size());
}

TEST(SimulateCommand, MarksWhatChangesTheSamplesOfAStep) {
  const Result result = libra("simulate --methods wlb,wlb-repack " + job());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("wlb * "));
  EXPECT_THAT(result.out, HasSubstr("* trains an optimizer step on other samples"));
  EXPECT_EQ(result.out.find("wlb-repack *"), std::string::npos);
}

TEST(SimulateCommand, SaysWhatDoesNotFit) {
  const Result result = libra(
      "simulate --methods ulysses,libra --no-recompute --cluster hgx-h100 "
      "--gpus 8 --cp 2 --gbs 8 --steps 1 --seq-len 64K --oversize split --corpus " +
      mix());
  EXPECT_THAT(result.out, HasSubstr("more memory than the 80 GB of a GPU: ulysses, libra\n"));
}

TEST(SimulateCommand, LeavesOutWhatTheHeadsDoNotAllow) {
  const Result result = libra(
      "simulate --methods ulysses,none --q-heads 6 --kv-heads 2 --cp 4 "
      "--head-shards 1 --chunks 1 --gpus 8 --gbs 8 --seq-len 64K --oversize "
      "split --corpus " +
      mix());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ulysses is left out: "));
}

TEST(SimulateCommand, RefusesWhatBreaksARule) {
  const std::string rest = " --corpus " + mix() + " --seq-len 64K --oversize split --gbs 8 --cp 2";
  expect_refused(libra("simulate --gpus 7" + rest), "CP x PP");
  expect_refused(libra("simulate --gpus 8 --methods zeppelin" + rest),
                 "--methods: 'zeppelin' is not a method");
  expect_refused(libra("simulate --gpus 8 --methods libra,libra" + rest), "is there twice");
  expect_refused(libra("simulate --gpus 8 --pool 3" + rest), "P");
  expect_refused(libra("simulate --gpus 8 --cluster nowhere" + rest), "no such cluster");
  expect_refused(libra("simulate --gpus 8 --placer none" + rest), "--placer: method libra");
  expect_refused(libra("simulate --gpus 8 --ep 2" + rest), "has no experts");
}

// Ten samples a window: two windows are as many as there may be.
TEST(MakeWindows, SayHowManyStepsFitIntoMemory) {
  SimOptions options;
  options.corpus.packing.tokens = 10;
  options.gbs = 1;
  options.steps = 2;
  const Corpus corpus{"ones", std::vector<std::int64_t>(100, 1)};
  EXPECT_EQ(make_windows(corpus, options, 20).windows.size(), 2u);
  options.steps = 1'000'000;
  try {
    make_windows(corpus, options, 20);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "--steps 1000000: all windows are kept in memory, and 3 of these have more than "
                 "20 samples, the most there may be: use at most 2 steps");
  }
}

TEST(TuneCommand, GivesOptionsThatSimulateTakes) {
  const nlohmann::json tuned = json_of("tune " + job());
  const std::string options = tuned["best"]["options"];
  const nlohmann::json again = json_of("simulate --methods libra " + job() + " " + options);
  EXPECT_DOUBLE_EQ(again["methods"]["libra"]["step_s"], tuned["best"]["step_s"]);
  EXPECT_GT(tuned["runners_up"].size(), 0u);
  EXPECT_TRUE(tuned["doing_nothing"]["ulysses"]["tokens_per_gpu_s"].is_number());
}

TEST(TuneCommand, SaysWhatToPasteAndHowSureItIs) {
  const Result result = libra("tune " + job());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("Paste\n  --pool "));
  EXPECT_THAT(result.out, HasSubstr("The best differs from the next by"));
  EXPECT_THAT(result.out, HasSubstr("Doing nothing\n  ulysses: "));
  EXPECT_THAT(result.out, HasSubstr("R - 1 <= 0.01 needs "));
}

TEST(TuneCommand, IsNotSureAfterOneStep) {
  const Result result = libra(
      "tune --seq-len 64K --oversize split --gpus 8 --cp 2 --gbs 8 --steps 1 --layers 4 --corpus " +
      mix());
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("one step cannot say how sure"));
}

TEST(TuneCommand, FindsLegalHeadShardsByItself) {
  EXPECT_EQ(json_of("tune --tp 2 --q-heads 4 --kv-heads 4 " + job())["tp"], 2);
  EXPECT_EQ(json_of("tune --q-heads 9 --kv-heads 3 " + job())["best"]["head_shards"], 1);
}

TEST(TuneCommand, SaysWhyUlyssesIsLeftOut) {
  EXPECT_THAT(libra("tune --q-heads 9 --kv-heads 3 " + job()).out,
              HasSubstr("ulysses is left out: "));
}

TEST(TuneCommand, RefusesACapThatNothingKeeps) {
  expect_refused(libra("tune --memory-cap 1M " + job()), "nothing fits into 1.05 MB a GPU");
  expect_refused(libra("tune --memory-cap 0 " + job()), "--memory-cap: the cap is 0");
}

TEST(PaperCommand, PutsThePaperBesideOurs) {
  const nlohmann::json json = json_of("paper --figures 4,8 --steps 2");
  ASSERT_EQ(json["figures"].size(), 2u);
  EXPECT_EQ(json["figures"]["4"]["rows"][3]["what"], "256K, P 8");
  EXPECT_EQ(json["figures"]["4"]["rows"][3]["paper"], 1.08);
  EXPECT_NEAR(json["figures"]["4"]["rows"][3]["faithful"], 1.08, 0.5);
  const Result text = libra("paper --figures 2 --steps 1");
  EXPECT_THAT(text.out, HasSubstr("256K, median"));
  EXPECT_THAT(text.out, HasSubstr("ratio"));
}

// Of WLB-LLM with delay only: the others have done all.
TEST(PaperCommand, SaysHowMuchOfTheWorkWlbHasDone) {
  const nlohmann::json rows = json_of("paper --figures 12 --steps 1")["figures"]["12"]["rows"];
  std::size_t said = 0;
  for (const nlohmann::json& row : rows) {
    const std::string what = row["what"];
    const bool waits = what.find("WLB-LLM") != std::string::npos &&
                       what.find("without delay") == std::string::npos;
    EXPECT_EQ(row["work_share"].is_number(), waits) << what;
    if (waits) {
      EXPECT_LT(row["work_share"], 1.0) << what;
      ++said;
    }
  }
  EXPECT_EQ(said, 4u);  // mean and max at two lengths
  EXPECT_THAT(libra("paper --figures 12 --steps 1").out,
              ::testing::ContainsRegex("256K, mean, WLB-LLM \\([0-9]+% of the work\\)"));
}

TEST(PaperCommand, ListsTheFiguresWhenAskedForAnother) {
  expect_refused(libra("paper --figures 7"), "'7' is not a figure or section: use one of 2, 4, 8");
  expect_refused(libra("paper --figures 2,2"), "'2' is there twice");
}

}  // namespace
}  // namespace libra::cli
