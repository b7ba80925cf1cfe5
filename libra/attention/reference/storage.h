// From a run-time DType to the C++ types that the kernels are templates of.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "libra/attention/attention.h"
#include "libra/base/bfloat16.h"
#include "libra/base/check.h"
#include "libra/base/dtype.h"

namespace libra::reference {

/// What sums and gradients of tensors stored as Storage are kept in (accumulation_dtype).
template <typename Storage>
using Accumulation = std::conditional_t<std::is_same_v<Storage, double>, double, float>;

/// Calls function(Storage{}) with double, float or Bf16. Requires a dtype that check_dtype accepted
/// (checks.h).
template <typename Function>
void with_storage(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFp64:
      return std::forward<Function>(function)(double{});
    case DType::kFp32:
      return std::forward<Function>(function)(float{});
    case DType::kBf16:
      return std::forward<Function>(function)(Bf16{});
    case DType::kFp16:
      break;
  }
  LIBRA_CHECK(false, "{} reached a kernel", dtype_name(dtype));
}

/// The `dim` contiguous elements of one row and head.
template <typename T>
T* vector_at(const TensorView& tensor, std::int64_t row, std::int64_t head) {
  return static_cast<T*>(tensor.data) + row * tensor.row_stride + head * tensor.head_stride;
}

/// to = from, element by element, rounded to To. Double to bf16 rounds to fp32 on the way.
template <typename To, typename From>
To rounded(const From& from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return Bf16(static_cast<float>(from));
  } else if constexpr (std::is_same_v<From, Bf16>) {
    return static_cast<To>(static_cast<float>(from));
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace libra::reference
