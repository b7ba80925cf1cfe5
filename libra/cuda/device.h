// The GPUs of this machine, and which of them a thread works with.
#pragma once

#include <cstdint>
#include <string>

namespace libra {

/// GPUs that this process can use; 0 without a driver or a GPU. Never throws.
std::int32_t device_count();

/// "NVIDIA H200". Throws DeviceError for a device that is not there.
std::string device_name(std::int32_t device);

/// Makes `device` the calling thread's current one, and the one before again at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(std::int32_t device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  std::int32_t before_ = 0;
};

}  // namespace libra
