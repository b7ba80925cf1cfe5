// What kernels see of a TensorView, and the conversions between formats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "libra/attention/attention.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"

namespace libra::cudnn {

inline constexpr int kThreads = 256;  // of a block

inline std::int64_t blocks_for(std::int64_t threads) { return (threads + kThreads - 1) / kThreads; }

inline void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

template <typename T>
__device__ float load(T value) {
  return static_cast<float>(value);
}

template <typename T>
__device__ T store(float value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __float2bfloat16_rn(value);
  if constexpr (std::is_same_v<T, __half>) return __float2half_rn(value);
  if constexpr (std::is_same_v<T, float>) return value;
}

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T values[kWidth];
};

template <typename T>
struct View {
  T* data;
  std::int64_t row_stride, head_stride;

  explicit View(const TensorView& tensor)
      : data(static_cast<T*>(tensor.data)),
        row_stride(tensor.row_stride),
        head_stride(tensor.head_stride) {}

  __device__ T* at(std::int64_t row, std::int64_t head, std::int64_t c) const {
    return data + row * row_stride + head * head_stride + c;
  }

  template <int kWidth>
  __device__ Vector<T, kWidth>& vector(std::int64_t row, std::int64_t head, std::int64_t c) const {
    return *reinterpret_cast<Vector<T, kWidth>*>(at(row, head, c));
  }
};

// Calls function(tag) with a null pointer of the element type.
template <typename Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFp32:
      return function(static_cast<float*>(nullptr));
    case DType::kBf16:
      return function(static_cast<__nv_bfloat16*>(nullptr));
    case DType::kFp16:
      return function(static_cast<__half*>(nullptr));
    default:
      throw ConfigError("the GPU backend works on fp32, bf16 and fp16, not on fp64");
  }
}

// The same for every element type.
template <typename Function>
void for_each_type(Function&& function) {
  for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16}) with_type(dtype, function);
}

// A kernel is loaded at its first launch, which may wait for all of the device, unless it was asked
// for before.
template <typename... Arguments>
void load_kernel(void (*kernel)(Arguments...)) {
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
}

template <typename Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

}  // namespace libra::cudnn
