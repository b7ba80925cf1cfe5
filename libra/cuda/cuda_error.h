// Turns what the CUDA runtime returns into libra::DeviceError.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "libra/base/error.h"

namespace libra {

/// A GPU, its driver or one of its libraries that refused or failed. The message names the call.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// Throws DeviceError unless `status` is cudaSuccess. `what`: the call, and of what.
void check_cuda(cudaError_t status, const char* what);

}  // namespace libra
