#include "libra/cli/cli.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "libra/base/version.h"
#include "libra/cli/test_program.h"
#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

using testing::HasSubstr;

TEST(CliTest, VersionIsTheProjects) {
  const Result result = libra("--version");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, std::string("libra ") + kVersion + "\n");
}

TEST(CliTest, HelpNamesEveryCommand) {
  const Result result = libra("--help");
  EXPECT_EQ(result.code, 0);
  for (const char* command : {"corpus", "plan", "run", "show", "validate"}) {
    EXPECT_THAT(result.out, HasSubstr(command));
  }
}

TEST(CliTest, HelpOfEveryCommandHasDefaultsAndAnExample) {
  for (const std::string command : {"corpus", "plan", "run", "show", "validate"}) {
    const Result result = libra(command + " --help");
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out, HasSubstr("libra " + command));
    EXPECT_THAT(result.out, HasSubstr("--json"));
  }
  EXPECT_THAT(libra("plan --help").out, HasSubstr("--block SIZE=4K"));
}

TEST(CliTest, HelpOfPlanAndRunHasEveryDefaultAndWhatIsRequired) {
  const std::vector<const char*> common = {"--corpus PATH REQUIRED",
                                           "--seq-len SIZE REQUIRED",
                                           "--gbs N REQUIRED",
                                           "--dp N REQUIRED",
                                           "--cp N REQUIRED",
                                           "--pool N REQUIRED",
                                           "--tp N=1",
                                           "--packing NAME=first-fit",
                                           "--oversize POLICY=error",
                                           "--order NAME=shuffled",
                                           "--seed N=0",
                                           "--model NAME=qwen3-8b",
                                           "--block SIZE=4K",
                                           "--head-shards N=2",
                                           "--chunks N=2",
                                           "--backward MODE=keep",
                                           "--home NAME=contiguous",
                                           "--tau X=0.03",
                                           "--cost NAME=flops",
                                           "--gpus-per-node N=8",
                                           "(default: no cap)",
                                           "(default: h200)",
                                           "(default: whole for",
                                           "(default: as --head-dim)"};
  const std::string plan = libra("plan --help").out;
  const std::string run = libra("run --help").out;
  for (const char* text : common) {
    EXPECT_THAT(plan, HasSubstr(text));
    EXPECT_THAT(run, HasSubstr(text));
  }
  EXPECT_THAT(plan, HasSubstr("--placer NAMES=none,ulysses,paper,balanced"));
  EXPECT_THAT(plan, HasSubstr("--steps N=10"));
  EXPECT_THAT(run, HasSubstr("--placer NAMES=none,balanced"));
  for (const char* text : {"--transport NAME=inproc", "--dtype NAME=fp32",
                           "--scale-lengths A/B=1/128", "--deadline SECONDS=300"}) {
    EXPECT_THAT(run, HasSubstr(text));
  }
}

TEST(CliTest, OnlyTheCommandRunStartsMpi) {
  expect_refused(libra("plan --transport mpi"), "see libra plan --help");
  const Result help = libra("run --transport mpi --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("--transport"));
}

TEST(CliTest, PlanAndRunTakeTheSameJobOptions) {
  const std::string plan = libra("plan --help").out;
  const std::string run = libra("run --help").out;
  for (const char* option :
       {"--corpus",      "--seq-len", "--packing",  "--oversize",   "--order",         "--seed",
        "--model",       "--q-heads", "--kv-heads", "--head-dim",   "--value-dim",     "--gbs",
        "--dp",          "--cp",      "--tp",       "--pool",       "--gpus-per-node", "--block",
        "--head-shards", "--chunks",  "--backward", "--memory-cap", "--placer",        "--fetch",
        "--home",        "--tau",     "--faithful", "--cost",       "--device-profile"}) {
    EXPECT_THAT(plan, HasSubstr(std::string(option) + " ")) << option;
    EXPECT_THAT(run, HasSubstr(std::string(option) + " ")) << option;
  }
}

TEST(CliTest, MissingAndUnknownCommandsListTheKnown) {
  expect_refused(libra(""), "use one of corpus, plan, simulate, tune, paper, run");
  expect_refused(libra("balance"), "no command 'balance': use one of corpus, plan");
}

struct Case {
  std::string command;
  std::string wanted;
};

TEST(CliTest, BadOptionsGetOneLineThatSaysWhatWouldBeRight) {
  const std::string plan = "plan " + small_job();
  const std::string run = "run " + small_job();
  const std::string open = "plan --corpus " + mix() + " --oversize truncate --seq-len 256K";
  const std::vector<Case> cases = {
      {"plan", "--corpus is required"},
      {"plan --corpus", "--corpus"},
      {plan + " --bogus", "--bogus: see libra plan --help"},
      {plan + " --dp 4", "--dp"},
      {open + " --gbs 16 --dp x --cp 2 --pool 2", "--dp: 'x' is not a size"},
      {open + " --gbs 16 --dp -4 --cp 2 --pool 2", "--dp: '-4' is not a size"},
      {open + " --gbs 16 --dp 4G --cp 2 --pool 2", "--dp: '4G' is not a size"},
      {open + " --gbs 16 --dp 2048M --cp 2 --pool 2", "--dp: 2048M is too large"},
      {open + " --gbs 16 --dp 3 --cp 2 --pool 2", "nearest legal value 2 or 4"},
      {open + " --gbs 16 --dp 4 --cp 2 --pool 3", "nearest legal value 2 or 4"},
      {open + " --gbs 0 --dp 4 --cp 2 --pool 2", "GBS is 0: it must be at least 1"},
      {open + " --gbs 16 --dp 4 --cp 0 --pool 2", "CP is 0: it must be at least 1"},
      {open + " --gbs 16 --dp 4 --cp 2 --tp 3 --pool 2", "nearest legal value"},
      {plan + " --block 0", "the block size B is 0"},
      {plan + " --head-shards 3", "nearest legal value 2 or 4"},
      {plan + " --chunks 3", "nearest legal value 2 or 4"},
      {plan + " --kv-heads 5", "nearest legal"},
      {plan + " --q-heads 0", "q_heads is 0"},
      {plan + " --head-dim 100000", "head_dim"},
      {plan + " --model gpt", "qwen3-8b, qwen3-30b-a3b, qwen3-235b-a22b"},
      {plan + " --placer best", "none, ulysses, paper, reserve, balanced"},
      {plan + " --placer none,none", "twice"},
      {plan + " --placer none,,paper", "--placer"},
      {plan + " --fetch some", "whole, prefix"},
      {plan + " --home here", "contiguous, zigzag-row, zigzag-document"},
      {plan + " --home explicit", "--home"},
      {plan + " --packing tight", "first-fit, best-fit-decreasing, concat"},
      {plan + " --oversize keep", "--oversize"},
      {plan + " --order random", "shuffled, file-order-once, file-order"},
      {plan + " --idx-unit lines", "documents, sequences"},
      {plan + " --backward never", "keep, refetch"},
      {plan + " --cost joules", "flops, seconds"},
      {plan + " --tau -1", "--tau: '-1' is not a number from 0 to 100"},
      {plan + " --tau nan", "--tau"},
      {plan + " --steps 0", "--steps is 0"},
      {plan + " --gpus-per-node 0", "--gpus-per-node is 0"},
      {plan + " --memory-cap 1K", "the cap is 1.02 kB"},
      {plan + " --device-profile h200", "--cost seconds"},
      {plan + " --cost seconds --device-profile nope", "nope"},
      {plan + " --placer paper --search-us 5", "--search-us is for placer balanced, not paper"},
      {plan + " --placer reserve --inter-node-weight 5", "--inter-node-weight is for"},
      {plan + " --placer paper --node-fetch", "--node-fetch is for placer balanced or reserve"},
      {plan + " --placer none --cost seconds --cluster hgx-h200", "--cluster is for placer"},
      {plan + " --grouping fairest", "production, zigzag, zigzag_swap, vrsp, vrsp_refined"},
      {plan + " --placer balanced --faithful", "--faithful is the paper's system"},
      {plan + " --fetch prefix --faithful", "--faithful"},
      {plan + " --tau 0.1 --faithful", "--faithful"},
      {plan + " --cost seconds --faithful", "--faithful"},
      {run + " --dtype fp8", "use fp64, fp32 or bf16"},
      {run + " --dtype fp16", "use fp64, fp32 or bf16"},
      {"calibrate", "nothing to measure"},
      {"replay " + small_job() + " --pools 0", "--pools is 0"},
      {"replay " + small_job() + " --rounds 0", "--rounds is 0"},
      {"replay " + small_job() + " --cost seconds --placer paper --device 99", "GPU"},
      {run + " --transport tcp", "inproc, mpi, peer and nccl are there"},
      {run + " --backend flash", "reference and cudnn are there"},
      {run + " --transport peer", "does not go with --backend reference"},
      {run + " --backend cudnn --dtype fp64", "it runs bf16"},
      {run + " --scale-lengths 3/2", "write a fraction such as 1/128"},
      {run + " --scale-lengths 1/0", "write a fraction such as 1/128"},
      {run + " --scale-lengths 0", "write a fraction such as 1/128"},
      {run + " --scale-lengths half", "--scale-lengths: 'half'"},
      {run + " --which-pool 8", "pools 0 to 7"},
      {run + " --deadline 0", "--deadline"},
      {"show", "PLAN is required"},
      {"corpus", "PATH is required"},
      {"corpus " + mix() + " --seq-len 1K --oversize error", "truncate, split or drop"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.command);
    expect_refused(libra(c.command), c.wanted);
  }
}

TEST(CliTest, OversizeErrorNamesTheOtherPoliciesAndHowManySamples) {
  expect_refused(
      libra("plan --corpus " + mix() + " --seq-len 256K --gbs 16 --dp 4 --cp 2 --pool 2"),
      "110 documents are longer than the packed sequence of 256K tokens (the longest has "
      "1048576): choose oversize truncate, split or drop");
}

TEST(CliTest, TwoOutputsInOneFileAreRefused) {
  const TempDir folder;
  const std::string file = folder.path() + "/out";
  const std::string other_name = folder.path() + "/./out";
  const std::string wanted = other_name + ": is named for two outputs";
  expect_refused(libra("plan " + small_job(), {"--json", file, "--save", other_name}), wanted);
  expect_refused(libra("run " + small_job(), {"--json", file, "--trace", other_name}), wanted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CliTest, AnOutputThatFailsLeavesNeitherTextNorFiles) {
  const TempDir folder;
  const std::string file = folder.path() + "/out";
  const std::string wanted = "/dev/full: cannot be written";
  const std::string plan = "plan --steps 1 " + small_job();
  expect_refused(libra(plan, {"--json", "/dev/full", "--save", file}), wanted);
  expect_refused(libra(plan, {"--json", file, "--save", "/dev/full"}), wanted);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CliTest, AnUnwritableStandardOutputIsAnError) {
  std::ostream closed(nullptr);
  std::ostringstream err;
  EXPECT_EQ(
      run_cli({"corpus", "synthetic:paper-256k", "--synthetic-documents", "10"}, {closed, err}), 2);
  EXPECT_THAT(err.str(), HasSubstr("libra: error: standard output"));
}

TEST(CliTest, ProgressIsShownOnATerminalOnly) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(libra("plan --steps 2 " + small_job()).err, "");
  std::vector<std::string> arguments;
  std::istringstream words("plan --steps 2 " + small_job());
  for (std::string word; words >> word;) arguments.push_back(word);
  EXPECT_EQ(run_cli(arguments, {out, err, true}), 0);
  EXPECT_THAT(err.str(), HasSubstr("\rplanning window 1/2"));
}

}  // namespace
}  // namespace libra::cli
