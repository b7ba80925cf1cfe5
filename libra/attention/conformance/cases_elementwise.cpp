#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/tensors.h"
#include "libra/base/error.h"

namespace libra::conformance {
namespace {

constexpr Layout kFrom = {false, 8, 16};
constexpr Layout kTo = {true, 16, 8};

HostTensor random_tensor(DType dtype, Rng& rng) {
  HostTensor tensor(dtype, 7, 3, 8);
  randomize(tensor, 1.0, rng);
  return tensor;
}

// The backend's result, and that it left the gaps alone: they are as in a fresh upload of the same.
void expect_holds(const Subject& subject, const DeviceTensor& actual, const HostTensor& expected,
                  const Layout& layout) {
  EXPECT_EQ(actual.download().values, expected.values);
  EXPECT_EQ(actual.image(), DeviceTensor(subject, expected, layout).image());
}

}  // namespace

void copy_moves_strided_rows(const Subject& subject) {
  const auto backend = subject.make_backend();
  const auto stream = subject.make_stream();
  const HostTensor source(DType::kFp64, 6, 1, 4, 1.5);
  HostTensor expected(DType::kFp64, 6, 1, 4, -1.0);
  const DeviceTensor from(subject, source, {false, 3, 2});
  const DeviceTensor to(subject, expected, {false, 1, 0});
  // Elements [1, 3) of every row.
  const auto view = [](const DeviceTensor& tensor) {
    return StridedView{static_cast<std::byte*>(tensor.view().data) + 8, 6, 16,
                       tensor.view().row_stride * 8};
  };
  backend->copy(view(from), view(to), *stream);
  backend->copy({}, {}, *stream);
  stream->synchronize();
  for (std::int64_t row = 0; row < 6; ++row) {
    expected.vector(row, 0)[1] = expected.vector(row, 0)[2] = 1.5;
  }
  expect_holds(subject, to, expected, {false, 1, 0});
  StridedView shorter = view(to);
  --shorter.rows;
  EXPECT_THROW(backend->copy(view(from), shorter, *stream), ConfigError);
}

void fill_sets_the_view_only(const Subject& subject) {
  const auto backend = subject.make_backend();
  const auto stream = subject.make_stream();
  for (const DType dtype : subject.dtypes()) {
    HostTensor expected(dtype, 7, 3, 8, 1.0);
    const DeviceTensor tensor(subject, expected, kTo);
    TensorView part = tensor.view();
    part.rows = 4;
    backend->fill(part, 0.1, *stream);
    stream->synchronize();
    for (std::int64_t i = 0; i < 4 * 3 * 8; ++i) {
      expected.values[static_cast<std::size_t>(i)] = round_to(dtype, 0.1);
    }
    expect_holds(subject, tensor, expected, kTo);
  }
}

void add_adds(const Subject& subject) {
  const auto backend = subject.make_backend();
  const auto stream = subject.make_stream();
  for (const DType storage : subject.dtypes()) {
    const DType dtype = accumulation_dtype(storage);
    Rng rng(40);
    const HostTensor source = random_tensor(dtype, rng);
    HostTensor expected = random_tensor(dtype, rng);
    const DeviceTensor from(subject, source, kFrom);
    const DeviceTensor to(subject, expected, kTo);
    backend->add(from.view(), to.view(), *stream);
    stream->synchronize();
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      expected.values[i] = round_to(dtype, expected.values[i] + source.values[i]);
    }
    expect_holds(subject, to, expected, kTo);
    TensorView narrow = to.view();
    --narrow.dim;
    EXPECT_THROW(backend->add(from.view(), narrow, *stream), ConfigError);
    TensorView other = to.view();
    other.dtype = DType::kBf16;
    EXPECT_THROW(backend->add(other, other, *stream), ConfigError);
  }
}

void convert_rounds(const Subject& subject) {
  const auto backend = subject.make_backend();
  const auto stream = subject.make_stream();
  for (const DType storage : subject.dtypes()) {
    const DType sums = accumulation_dtype(storage);
    for (const bool widen : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", dtype_name(storage), widen ? "widened" : "rounded"));
      Rng rng(41);
      const HostTensor source = random_tensor(widen ? storage : sums, rng);
      HostTensor expected(widen ? sums : storage, 7, 3, 8);
      const DeviceTensor from(subject, source, kFrom);
      const DeviceTensor to(subject, expected, kTo);
      backend->convert(from.view(), to.view(), *stream);
      stream->synchronize();
      for (std::size_t i = 0; i < expected.values.size(); ++i) {
        expected.values[i] = round_to(expected.dtype, source.values[i]);
      }
      expect_holds(subject, to, expected, kTo);
      TensorView shorter = to.view();
      --shorter.rows;
      EXPECT_THROW(backend->convert(from.view(), shorter, *stream), ConfigError);
    }
  }
}

}  // namespace libra::conformance
