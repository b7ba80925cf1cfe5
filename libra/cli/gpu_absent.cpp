// A program built without the GPU rooms.
#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/cli/executor.h"
#include "libra/cli/gpu_work.h"

namespace libra::cli {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw ConfigError(fmt::format(
      "{}: this program was built without the GPU rooms: build it where CUDA 13, cuDNN 9 and the "
      "cudnn-frontend headers are found",
      what));
}

}  // namespace

std::unique_ptr<Executor> make_gpu_executor(const std::string&, std::int32_t,
                                            std::chrono::milliseconds) {
  refuse("--backend cudnn");
}

DeviceProfileData measure_profile(const CalibrationOptions&, const OnStep&) { refuse("calibrate"); }

std::vector<BlockRate> measure_block_rates(std::int32_t, const std::vector<std::int64_t>&,
                                           const std::vector<std::int32_t>&, const OnStep&) {
  refuse("calibrate");
}

std::vector<std::vector<double>> measure_equal_work(int, const OnStep&) { refuse("calibrate"); }

std::vector<CopyRate> measure_copies(const std::vector<std::int64_t>&, const OnStep&) {
  refuse("calibrate");
}

std::vector<ReplayedWorker> replay_workers(const PoolPlan&, const std::vector<std::int32_t>&, int,
                                           const OnStep&) {
  refuse("replay");
}

}  // namespace libra::cli
