#include "libra/cuda/cuda_memory.h"

#include <fmt/format.h>

#include <cstring>

#include "libra/base/units.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra {

std::shared_ptr<std::byte> allocate_device(std::int32_t device, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  const DeviceGuard guard(device);
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw DeviceError(fmt::format("device {} has {} free of {}: {} do not fit", device,
                                  format_bytes(static_cast<std::int64_t>(free)),
                                  format_bytes(static_cast<std::int64_t>(total)),
                                  format_bytes(bytes)));
  }
  check_cuda(status, "cudaMalloc");
  return {static_cast<std::byte*>(memory), [](std::byte* first) { cudaFree(first); }};
}

std::shared_ptr<std::byte> allocate_mapped(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  check_cuda(cudaHostAlloc(&memory, static_cast<std::size_t>(bytes),
                           cudaHostAllocMapped | cudaHostAllocPortable),
             "cudaHostAlloc");
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return {static_cast<std::byte*>(memory), [](std::byte* first) { cudaFreeHost(first); }};
}

void copy_memory(const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpy(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault),
             "cudaMemcpy");
  check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

}  // namespace libra
