// A [rows, heads, dim] tensor in host memory that owns its elements. For CPU runs, tests and
// examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/base/rng.h"

namespace libra {

class HostTensor {
 public:
  HostTensor() = default;
  /// Every element is NaN, so that one that nobody wrote is seen.
  HostTensor(std::int64_t rows, std::int32_t heads, std::int32_t dim, DType dtype);

  /// Dense, valid as long as the tensor.
  TensorView view();

  /// Element (row, head, component) as double. Requires fp64, fp32 or bf16.
  double get(std::int64_t row, std::int32_t head, std::int32_t component) const;
  void set(std::int64_t row, std::int32_t head, std::int32_t component, double value);

  /// Standard normal values, rounded to the dtype.
  void fill_normal(Rng& rng);

  std::int64_t rows() const { return rows_; }
  std::int32_t heads() const { return heads_; }
  std::int32_t dim() const { return dim_; }
  DType dtype() const { return dtype_; }

 private:
  std::size_t offset(std::int64_t row, std::int32_t head, std::int32_t component) const;

  std::int64_t rows_ = 0;
  std::int32_t heads_ = 0;
  std::int32_t dim_ = 0;
  DType dtype_ = DType::kFp64;
  std::vector<std::byte> bytes_;
};

}  // namespace libra
