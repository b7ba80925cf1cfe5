#include "libra/base/dtype.h"

#include <fmt/format.h>

#include <array>

#include "libra/base/check.h"
#include "libra/base/error.h"

namespace libra {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<DTypeInfo, 4> kDTypes = {{{DType::kFp64, "fp64", 8},
                                               {DType::kFp32, "fp32", 4},
                                               {DType::kBf16, "bf16", 2},
                                               {DType::kFp16, "fp16", 2}}};

const DTypeInfo& info(DType dtype) {
  for (const DTypeInfo& candidate : kDTypes) {
    if (candidate.dtype == dtype) return candidate;
  }
  LIBRA_CHECK(false, "DType {} has no entry", static_cast<int>(dtype));
  return kDTypes[0];
}

}  // namespace

std::int64_t element_bytes(DType dtype) { return info(dtype).bytes; }

DType accumulation_dtype(DType storage) {
  return storage == DType::kFp64 ? DType::kFp64 : DType::kFp32;
}

std::string_view dtype_name(DType dtype) { return info(dtype).name; }

DType parse_dtype(std::string_view name) {
  for (const DTypeInfo& candidate : kDTypes) {
    if (candidate.name == name) return candidate.dtype;
  }
  throw ConfigError(fmt::format("'{}' is not a number format: use fp64, fp32, bf16 or fp16", name));
}

}  // namespace libra
