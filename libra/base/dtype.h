// The number formats that tensors are stored in.
#pragma once

#include <cstdint>
#include <string_view>

namespace libra {

enum class DType : std::uint8_t { kFp64, kFp32, kBf16, kFp16 };

/// Bytes of one element: 8, 4, 2, 2.
std::int64_t element_bytes(DType dtype);

/// Gradients and the log-sum-exp are kept in this format: fp64 for fp64, fp32 for everything else.
DType accumulation_dtype(DType storage);

/// "fp64", "fp32", "bf16", "fp16".
std::string_view dtype_name(DType dtype);

/// The inverse of dtype_name. Throws ConfigError that lists the four names.
DType parse_dtype(std::string_view name);

}  // namespace libra
