#include "libra/attention/cudnn/stream_memory.h"

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra::cudnn {

StreamMemory::~StreamMemory() {
  if (memory_ != nullptr) cudaFree(memory_);
}

std::byte* StreamMemory::reserve(std::int64_t bytes, cudaStream_t stream) {
  if (bytes <= bytes_) return memory_;
  const DeviceGuard guard(device_);
  if (memory_ != nullptr) check_cuda(cudaFreeAsync(memory_, stream), "cudaFreeAsync");
  memory_ = nullptr;
  bytes_ = 0;
  const std::int64_t grown = (bytes + step_bytes_ - 1) / step_bytes_ * step_bytes_;
  void* memory = nullptr;
  check_cuda(cudaMallocAsync(&memory, static_cast<std::size_t>(grown), stream),
             "cudaMallocAsync of the attention scratch");
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = grown;
  ++allocations_;
  return memory_;
}

}  // namespace libra::cudnn
