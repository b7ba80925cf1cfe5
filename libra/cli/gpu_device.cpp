#include "libra/cli/gpu_device.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/cuda/device.h"

namespace libra::cli {

void require_device(std::int32_t device) {
  if (device >= 0 && device < device_count()) return;
  throw ConfigError(
      fmt::format("--device {}: there is no such GPU; this process can use {}, counted "
                  "from 0",
                  device, device_count()));
}

}  // namespace libra::cli
