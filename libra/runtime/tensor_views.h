// Ways to look at the same memory: rows and heads of a tensor as bytes to move, regions of an arena
// as tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libra/attention/attention.h"
#include "libra/base/strided_view.h"
#include "libra/plan/memory_plan.h"

namespace libra {

/// Rows [row, row + rows) and heads [head, head + heads) of a tensor, as a tensor of their own.
TensorView sub_tensor(const TensorView& tensor, std::int64_t row, std::int64_t rows,
                      std::int32_t head, std::int32_t heads);

/// All of a tensor as strided rows of bytes. Throws ConfigError unless the heads of a row lie one
/// after the other (head_stride = dim), which is what one strided copy can move.
StridedView as_rows(const TensorView& tensor);

/// Slot `slot` of a region as a dense [rows, heads, dim] tensor.
TensorView region_tensor(std::byte* memory, const Region& region, std::int32_t slot,
                         std::int32_t heads, std::int32_t dim, DType dtype);

/// Rows [row, row + rows) of slot `slot` of a region as bytes.
StridedView region_rows(std::byte* memory, const Region& region, std::int32_t slot,
                        std::int64_t row, std::int64_t rows);

}  // namespace libra
