#include "libra/attention/cudnn/scratch.h"

#include <algorithm>

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra::cudnn {
namespace {

// Grown in steps, so that calls of slowly rising sizes allocate rarely.
constexpr std::int64_t kStepBytes = 32 << 20;

}  // namespace

Scratch::Scratch(std::int32_t device) : device_(device) {
  const DeviceGuard guard(device);
  check_cuda(cudaEventCreateWithFlags(&used_, cudaEventDisableTiming), "cudaEventCreate");
}

Scratch::~Scratch() {
  cudaEventSynchronize(used_);
  cudaEventDestroy(used_);
  if (memory_ != nullptr) cudaFree(memory_);
}

std::byte* Scratch::reserve(std::int64_t bytes, cudaStream_t stream) {
  const DeviceGuard guard(device_);
  check_cuda(cudaStreamWaitEvent(stream, used_), "cudaStreamWaitEvent");
  if (bytes <= bytes_) return memory_;
  if (memory_ != nullptr) check_cuda(cudaFreeAsync(memory_, stream), "cudaFreeAsync");
  memory_ = nullptr;
  bytes_ = 0;
  const std::int64_t grown = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  void* memory = nullptr;
  check_cuda(cudaMallocAsync(&memory, static_cast<std::size_t>(grown), stream),
             "cudaMallocAsync of the attention scratch");
  memory_ = static_cast<std::byte*>(memory);
  bytes_ = grown;
  ++allocations_;
  return memory_;
}

void Scratch::done(cudaStream_t stream) {
  check_cuda(cudaEventRecord(used_, stream), "cudaEventRecord");
}

}  // namespace libra::cudnn
