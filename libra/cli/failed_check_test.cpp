// `run --check` on workers that compute something wrong.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <utility>

#include "libra/cli/mpi_job.h"
#include "libra/cli/test_program.h"

namespace libra::cli {
namespace {

using testing::HasSubstr;

using Change = std::function<void(std::vector<LayerOutputs>&)>;

class ChangedExecutor final : public Executor {
 public:
  ChangedExecutor(std::unique_ptr<Executor> right, Change change)
      : right_(std::move(right)), change_(std::move(change)) {}

  PoolRun execute(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                  double softmax_scale) override {
    PoolRun run = right_->execute(plan, inputs, softmax_scale);
    change_(run.sequences);
    return run;
  }

  bool reports() const override { return true; }

 private:
  std::unique_ptr<Executor> right_;
  Change change_;
};

// Workers of this process in the place of ranks, their outputs changed.
class ChangedJob final : public MpiJob {
 public:
  explicit ChangedJob(Change change) : change_(std::move(change)) {}

  std::int32_t rank() const override { return 0; }
  std::int32_t size() const override { return 1; }
  void end(int exit_code) override { FAIL() << "the job was ended with " << exit_code; }
  std::unique_ptr<Executor> make_executor(std::int32_t workers,
                                          std::chrono::milliseconds deadline) override {
    EXPECT_EQ(workers, 4);
    return std::make_unique<ChangedExecutor>(make_inproc_executor(deadline), change_);
  }

 private:
  Change change_;
};

Result checked_run(const Change& change, const std::string& more) {
  ChangedJob job(change);
  std::vector<std::string> arguments;
  std::istringstream words("run " + small_job() +
                           " --scale-lengths 1/2048 --q-heads 8 --kv-heads 2 --head-dim 16 " +
                           "--check --dtype fp64 " + more);
  for (std::string word; words >> word;) arguments.push_back(word);
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_cli(arguments, {out, err, false, &job});
  return {code, out.str(), err.str()};
}

void nothing(std::vector<LayerOutputs>&) {}

void one_element(std::vector<LayerOutputs>& sequences) {
  HostTensor& dk = sequences[1].dk;
  dk.set(3, 1, 2, dk.get(3, 1, 2) + 1e-6);
}

TEST(FailedCheckTest, UnchangedOutputsPass) {
  const Result result = checked_run(nothing, "--transport mpi");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("check: ok, equal to plain attention"));
}

TEST(FailedCheckTest, OneWrongElementIsExitCodeOne) {
  const Result result = checked_run(one_element, "--transport mpi");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("check: FAILED"));
  EXPECT_THAT(result.out, testing::Not(HasSubstr("check: ok")));
}

TEST(FailedCheckTest, JsonSaysWhichOutputIsWrong) {
  const Result result = checked_run(one_element, "--transport mpi --json -");
  EXPECT_EQ(result.code, 1);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["checked"], true);
  for (const char* output : {"o", "lse", "dq", "dk", "dv"}) {
    EXPECT_EQ(json["max_abs_error"][output] > json["allowed_error"][output],
              std::string(output) == "dk")
        << output;
  }
}

TEST(FailedCheckTest, AnErrorThatIsNotANumberIsNullInJson) {
  const Result result = checked_run(
      [](std::vector<LayerOutputs>& sequences) { sequences[0].o.set(0, 0, 0, std::nan("")); },
      "--transport mpi --json -");
  EXPECT_EQ(result.code, 1);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["ok"], false);
  EXPECT_TRUE(json["max_abs_error"]["o"].is_null());
}

TEST(FailedCheckTest, ARankCannotRunOnThreads) {
  const Result result = checked_run(nothing, "--transport inproc");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("transport inproc"));
}

}  // namespace
}  // namespace libra::cli
