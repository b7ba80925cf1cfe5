#include "libra/cuda/device_clock.h"

#include <chrono>

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra {

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

cudaEvent_t EventPool::take() {
  if (!free_.empty()) {
    cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  const DeviceGuard guard(device_);
  const unsigned flags = kind_ == Kind::kTiming ? cudaEventDefault : cudaEventDisableTiming;
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, flags), "cudaEventCreate");
  return event;
}

bool has_happened(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check_cuda(status, "cudaEventQuery");
  return true;
}

DeviceClock::DeviceClock(std::int32_t device, cudaStream_t stream) {
  const DeviceGuard guard(device);
  check_cuda(cudaEventCreate(&origin_), "cudaEventCreate");
  check_cuda(cudaEventRecord(origin_, stream), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(origin_), "cudaEventSynchronize");
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  origin_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

DeviceClock::~DeviceClock() { cudaEventDestroy(origin_); }

std::int64_t DeviceClock::wall_ns(cudaEvent_t event) const {
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, origin_, event), "cudaEventElapsedTime");
  return origin_ns_ + static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace libra
