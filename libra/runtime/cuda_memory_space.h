// The memory of one GPU, for runs on it. Built where CUDA is.
#pragma once

#include <cstdint>
#include <memory>

#include "libra/runtime/memory_space.h"

namespace libra {

/// Streams are CudaStreams of `device`.
std::unique_ptr<MemorySpace> make_cuda_memory(std::int32_t device);

}  // namespace libra
