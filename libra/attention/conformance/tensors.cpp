#include "libra/attention/conformance/tensors.h"

#include <algorithm>
#include <cstring>

#include "libra/base/bfloat16.h"
#include "libra/base/float16.h"

namespace libra::conformance {
namespace {

constexpr std::byte kGap{0xA5};

template <typename T>
void put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void encode(DType dtype, double value, std::byte* to) {
  if (dtype == DType::kFp64) return put(to, value);
  if (dtype == DType::kFp32) return put(to, static_cast<float>(value));
  if (dtype == DType::kFp16) return put(to, Fp16(static_cast<float>(value)));
  put(to, Bf16(static_cast<float>(value)));
}

double decode_one(DType dtype, const std::byte* from) {
  if (dtype == DType::kFp64) return get<double>(from);
  if (dtype == DType::kFp32) return static_cast<double>(get<float>(from));
  if (dtype == DType::kFp16) return static_cast<double>(static_cast<float>(get<Fp16>(from)));
  return static_cast<double>(static_cast<float>(get<Bf16>(from)));
}

// Calls function(index into the dense values, byte offset in memory).
template <typename Function>
void for_each_element(const TensorView& view, Function&& function) {
  const std::int64_t bytes = element_bytes(view.dtype);
  std::size_t index = 0;
  for (std::int64_t row = 0; row < view.rows; ++row) {
    for (std::int64_t head = 0; head < view.heads; ++head) {
      const std::int64_t first = row * view.row_stride + head * view.head_stride;
      for (std::int64_t c = 0; c < view.dim; ++c) function(index++, (first + c) * bytes);
    }
  }
}

}  // namespace

HostTensor::HostTensor(DType type, std::int64_t num_rows, std::int32_t num_heads,
                       std::int32_t num_dims, double value)
    : dtype(type),
      rows(num_rows),
      heads(num_heads),
      dim(num_dims),
      values(static_cast<std::size_t>(num_rows * num_heads * num_dims), value) {}

void randomize(HostTensor& tensor, double amplitude, Rng& rng) {
  for (double& value : tensor.values) value = round_to(tensor.dtype, amplitude * rng.normal());
}

double round_to(DType dtype, double value) {
  std::byte bytes[sizeof(double)];
  encode(dtype, value, bytes);
  return decode_one(dtype, bytes);
}

void decode(DType dtype, const std::vector<std::byte>& bytes, std::vector<double>& values) {
  const auto size = static_cast<std::size_t>(element_bytes(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = decode_one(dtype, bytes.data() + i * size);
  }
}

double step(DType dtype) {
  if (dtype == DType::kFp64) return 0x1p-52;
  if (dtype == DType::kFp32) return 0x1p-23;
  return dtype == DType::kFp16 ? 0x1p-10 : 0x1p-7;
}

DeviceTensor::DeviceTensor(const Subject& subject, const HostTensor& tensor, const Layout& layout)
    : subject_(subject) {
  const std::int64_t vector = tensor.dim + layout.inner_gap;
  const std::int64_t inner = layout.heads_outermost ? tensor.rows : tensor.heads;
  const std::int64_t outer = layout.heads_outermost ? tensor.heads : tensor.rows;
  const std::int64_t outer_stride = inner * vector + layout.outer_gap;
  bytes_ = outer * outer_stride * element_bytes(tensor.dtype);
  memory_ = subject.allocate(std::max<std::int64_t>(bytes_, 1));
  view_ = {memory_.get(),
           tensor.dtype,
           tensor.rows,
           tensor.heads,
           tensor.dim,
           layout.heads_outermost ? vector : outer_stride,
           layout.heads_outermost ? outer_stride : vector};
  upload(tensor);
}

void DeviceTensor::upload(const HostTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_), kGap);
  for_each_element(view_, [&](std::size_t index, std::int64_t offset) {
    encode(view_.dtype, tensor.values[index], bytes.data() + offset);
  });
  subject_.upload(bytes.data(), memory_.get(), bytes_);
}

HostTensor DeviceTensor::download() const {
  HostTensor tensor(view_.dtype, view_.rows, view_.heads, view_.dim);
  const std::vector<std::byte> bytes = image();
  for_each_element(view_, [&](std::size_t index, std::int64_t offset) {
    tensor.values[index] = decode_one(view_.dtype, bytes.data() + offset);
  });
  return tensor;
}

std::vector<std::byte> DeviceTensor::image() const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_));
  subject_.download(memory_.get(), bytes.data(), bytes_);
  return bytes;
}

}  // namespace libra::conformance
