// Tensors on both sides: dense doubles for the oracle, and the same values in a backend's memory,
// in a storage type and with any strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/attention/conformance/subject.h"
#include "libra/base/rng.h"

namespace libra::conformance {

/// Dense [rows, heads, dim]. Values are always exactly representable in `dtype`.
struct HostTensor {
  DType dtype = DType::kFp64;
  std::int64_t rows = 0;
  std::int32_t heads = 0;
  std::int32_t dim = 0;
  std::vector<double> values;

  HostTensor() = default;
  /// All elements `value`.
  HostTensor(DType type, std::int64_t num_rows, std::int32_t num_heads, std::int32_t num_dims,
             double value = 0.0);

  double* vector(std::int64_t row, std::int64_t head) {
    return values.data() + (row * heads + head) * dim;
  }
  const double* vector(std::int64_t row, std::int64_t head) const {
    return values.data() + (row * heads + head) * dim;
  }
};

/// Normal values times `amplitude`, rounded to the tensor's dtype.
void randomize(HostTensor& tensor, double amplitude, Rng& rng);

/// `value` rounded to the format.
double round_to(DType dtype, double value);

/// Distance from 1 to the next larger number: 2^-52, 2^-23, 2^-10, 2^-7.
double step(DType dtype);

/// Dense values of type `dtype`, from their bytes. Requires as many bytes as values.
void decode(DType dtype, const std::vector<std::byte>& bytes, std::vector<double>& values);

struct Layout {
  bool heads_outermost = false;  ///< [heads, rows, dim] in memory instead of [rows, heads, dim]
  std::int64_t inner_gap = 0;    ///< unused elements after each vector
  std::int64_t outer_gap = 0;    ///< unused elements after each outermost index
};

/// A tensor in a backend's memory; the gaps hold a fixed pattern.
class DeviceTensor {
 public:
  DeviceTensor(const Subject& subject, const HostTensor& tensor, const Layout& layout = {});

  const TensorView& view() const { return view_; }
  HostTensor download() const;
  /// Every byte of the allocation, gaps included.
  std::vector<std::byte> image() const;

 private:
  void upload(const HostTensor& tensor);

  const Subject& subject_;
  TensorView view_;
  std::int64_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace libra::conformance
