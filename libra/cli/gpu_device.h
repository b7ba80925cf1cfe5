// Which GPUs a measurement may use. Private to this folder.
#pragma once

#include <cstdint>

namespace libra::cli {

/// Throws ConfigError for a device that this process cannot use; `--device` is what it names.
void require_device(std::int32_t device);

}  // namespace libra::cli
