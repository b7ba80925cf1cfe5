// Kernels that work element by element on views of fp32, bf16 or fp16 with any strides. Each
// function enqueues on `stream` and returns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "libra/attention/attention.h"

namespace libra::cudnn {

/// Loads all of them on the current device, so that no launch has to.
void load_elementwise_kernels();

void fill(const TensorView& tensor, double value, cudaStream_t stream);
void add(const TensorView& from, const TensorView& to, cudaStream_t stream);  ///< both fp32
void convert(const TensorView& from, const TensorView& to, cudaStream_t stream);
/// Fills with NaN if *flag, which the host may set at any time, is not 0.
void poison_if(const std::uint32_t* flag, const TensorView& tensor, cudaStream_t stream);

}  // namespace libra::cudnn
