#include "libra/cuda/device.h"

#include "libra/cuda/cuda_error.h"

namespace libra {

std::int32_t device_count() {
  int count = 0;
  const bool usable = cudaGetDeviceCount(&count) == cudaSuccess;
  if (!usable) cudaGetLastError();  // or the next call would report it
  return usable ? count : 0;
}

std::string device_name(std::int32_t device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return static_cast<const char*>(properties.name);
}

DeviceGuard::DeviceGuard(std::int32_t device) {
  check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
  if (device != before_) check_cuda(cudaSetDevice(device), "cudaSetDevice");
}

DeviceGuard::~DeviceGuard() { cudaSetDevice(before_); }

}  // namespace libra
