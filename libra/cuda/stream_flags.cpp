#include "libra/cuda/stream_flags.h"

#include <cuda.h>
#include <fmt/format.h>

#include "libra/cuda/cuda_error.h"

namespace libra {
namespace {

// The driver's functions are looked up, not linked: programs must start on machines without one.
template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  check_cuda(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
             name);
  if (result != cudaDriverEntryPointSuccess) {
    throw DeviceError(fmt::format("the driver has no {}: update it", name));
  }
  return reinterpret_cast<Function>(found);
}

using StreamValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

void check_driver(CUresult status, const char* name) {
  if (status == CUDA_SUCCESS) return;
  throw DeviceError(fmt::format("{} failed with driver error {}", name, static_cast<int>(status)));
}

CUdeviceptr address_of(std::uint32_t* word) { return reinterpret_cast<CUdeviceptr>(word); }

}  // namespace

void enqueue_write(cudaStream_t stream, std::uint32_t* word, std::uint32_t value) {
  static const auto write = driver_function<StreamValue>("cuStreamWriteValue32");
  check_driver(write(stream, address_of(word), value, CU_STREAM_WRITE_VALUE_DEFAULT),
               "cuStreamWriteValue32");
}

void enqueue_wait(cudaStream_t stream, std::uint32_t* word, std::uint32_t value) {
  static const auto wait = driver_function<StreamValue>("cuStreamWaitValue32");
  check_driver(wait(stream, address_of(word), value, CU_STREAM_WAIT_VALUE_GEQ),
               "cuStreamWaitValue32");
}

}  // namespace libra
