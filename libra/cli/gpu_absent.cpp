#include "libra/base/error.h"
#include "libra/cli/executor.h"

namespace libra::cli {

std::unique_ptr<Executor> make_gpu_executor(const std::string&, std::int32_t,
                                            std::chrono::milliseconds) {
  throw ConfigError(
      "--backend cudnn: this program was built without the GPU rooms: use --backend reference, or "
      "build where CUDA 13, cuDNN 9 and the cudnn-frontend headers are found");
}

}  // namespace libra::cli
