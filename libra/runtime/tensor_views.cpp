#include "libra/runtime/tensor_views.h"

#include <fmt/format.h>

#include "libra/base/error.h"

namespace libra {

TensorView sub_tensor(const TensorView& tensor, std::int64_t row, std::int64_t rows,
                      std::int32_t head, std::int32_t heads) {
  TensorView part = tensor;
  part.data = static_cast<std::byte*>(tensor.data) +
              (row * tensor.row_stride + head * tensor.head_stride) * element_bytes(tensor.dtype);
  part.rows = rows;
  part.heads = heads;
  return part;
}

StridedView as_rows(const TensorView& tensor) {
  if (tensor.heads > 1 && tensor.head_stride != tensor.dim) {
    throw ConfigError(fmt::format(
        "a tensor that takes part in the exchange has head stride {}: the heads of a row "
        "must lie one after the other, at stride {}",
        tensor.head_stride, tensor.dim));
  }
  const std::int64_t bytes = element_bytes(tensor.dtype);
  return {static_cast<std::byte*>(tensor.data), tensor.rows, tensor.heads * tensor.dim * bytes,
          tensor.row_stride * bytes};
}

TensorView region_tensor(std::byte* memory, const Region& region, std::int32_t slot,
                         std::int32_t heads, std::int32_t dim, DType dtype) {
  return {memory + region.slot(slot), dtype, region.rows, heads, dim,
          std::int64_t{heads} * dim,  dim};
}

StridedView region_rows(std::byte* memory, const Region& region, std::int32_t slot,
                        std::int64_t row, std::int64_t rows) {
  return {memory + region.row(slot, row), rows, region.row_bytes, region.row_bytes};
}

}  // namespace libra
