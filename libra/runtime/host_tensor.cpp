#include "libra/runtime/host_tensor.h"

#include <cstring>
#include <limits>

#include "libra/base/bfloat16.h"
#include "libra/base/check.h"

namespace libra {
namespace {

template <typename T>
double load(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof(T));
  if constexpr (sizeof(T) == 2) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <typename T>
void store(std::byte* to, double value) {
  if constexpr (sizeof(T) == 2) {
    const T narrow(static_cast<float>(value));
    std::memcpy(to, &narrow, sizeof(T));
  } else {
    const T narrow = static_cast<T>(value);
    std::memcpy(to, &narrow, sizeof(T));
  }
}

}  // namespace

HostTensor::HostTensor(std::int64_t rows, std::int32_t heads, std::int32_t dim, DType dtype)
    : rows_(rows),
      heads_(heads),
      dim_(dim),
      dtype_(dtype),
      bytes_(static_cast<std::size_t>(rows * heads * dim * element_bytes(dtype))) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int32_t head = 0; head < heads; ++head) {
      for (std::int32_t c = 0; c < dim; ++c)
        set(row, head, c, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

TensorView HostTensor::view() {
  return {bytes_.data(), dtype_, rows_, heads_, dim_, std::int64_t{heads_} * dim_, dim_};
}

std::size_t HostTensor::offset(std::int64_t row, std::int32_t head, std::int32_t component) const {
  return static_cast<std::size_t>(((row * heads_ + head) * dim_ + component) *
                                  element_bytes(dtype_));
}

double HostTensor::get(std::int64_t row, std::int32_t head, std::int32_t component) const {
  const std::byte* from = bytes_.data() + offset(row, head, component);
  switch (dtype_) {
    case DType::kFp64:
      return load<double>(from);
    case DType::kFp32:
      return load<float>(from);
    case DType::kBf16:
      return load<Bf16>(from);
    case DType::kFp16:
      break;
  }
  LIBRA_CHECK(false, "no host arithmetic for {}", dtype_name(dtype_));
  return 0;
}

void HostTensor::set(std::int64_t row, std::int32_t head, std::int32_t component, double value) {
  std::byte* to = bytes_.data() + offset(row, head, component);
  switch (dtype_) {
    case DType::kFp64:
      return store<double>(to, value);
    case DType::kFp32:
      return store<float>(to, value);
    case DType::kBf16:
      return store<Bf16>(to, value);
    case DType::kFp16:
      break;
  }
  LIBRA_CHECK(false, "no host arithmetic for {}", dtype_name(dtype_));
}

void HostTensor::fill_normal(Rng& rng) {
  for (std::int64_t row = 0; row < rows_; ++row) {
    for (std::int32_t head = 0; head < heads_; ++head) {
      for (std::int32_t c = 0; c < dim_; ++c) set(row, head, c, rng.normal());
    }
  }
}

}  // namespace libra
