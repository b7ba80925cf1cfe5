#include "libra/attention/reference/elementwise.h"

#include <algorithm>
#include <cstring>

#include "libra/attention/reference/storage.h"

namespace libra::reference {
namespace {

template <typename Function>
void for_each_vector(const TensorView& tensor, Function&& function) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t head = 0; head < tensor.heads; ++head) function(row, head);
  }
}

template <typename To, typename From>
void convert_vectors(const TensorView& from, const TensorView& to) {
  for_each_vector(to, [&](std::int64_t row, std::int64_t head) {
    const From* const source = vector_at<const From>(from, row, head);
    To* const destination = vector_at<To>(to, row, head);
    for (std::int64_t c = 0; c < to.dim; ++c) destination[c] = rounded<To>(source[c]);
  });
}

}  // namespace

void run_copy(const StridedView& from, const StridedView& to) {
  if (from.row_bytes == 0) return;  // memcpy takes no null pointer, not even for nothing
  for (std::int64_t row = 0; row < from.rows; ++row) {
    std::memcpy(to.data + row * to.stride_bytes, from.data + row * from.stride_bytes,
                static_cast<std::size_t>(from.row_bytes));
  }
}

void run_fill(const TensorView& tensor, double value) {
  with_storage(tensor.dtype, [&](auto storage) {
    using Storage = decltype(storage);
    const Storage stored = rounded<Storage>(value);
    for_each_vector(tensor, [&](std::int64_t row, std::int64_t head) {
      std::fill_n(vector_at<Storage>(tensor, row, head), tensor.dim, stored);
    });
  });
}

void run_add(const TensorView& from, const TensorView& to) {
  with_storage(to.dtype, [&](auto storage) {
    using Acc = Accumulation<decltype(storage)>;
    for_each_vector(to, [&](std::int64_t row, std::int64_t head) {
      const Acc* const source = vector_at<const Acc>(from, row, head);
      Acc* const sum = vector_at<Acc>(to, row, head);
      for (std::int64_t c = 0; c < to.dim; ++c) sum[c] += source[c];
    });
  });
}

void run_convert(const TensorView& from, const TensorView& to) {
  with_storage(from.dtype, [&](auto source) {
    with_storage(to.dtype, [&](auto destination) {
      convert_vectors<decltype(destination), decltype(source)>(from, to);
    });
  });
}

}  // namespace libra::reference
