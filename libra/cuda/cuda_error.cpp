#include "libra/cuda/cuda_error.h"

#include <fmt/format.h>

namespace libra {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw DeviceError(
      fmt::format("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

}  // namespace libra
