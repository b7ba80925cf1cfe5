#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "libra/attention/conformance/cases.h"
#include "libra/attention/conformance/judge.h"
#include "libra/attention/conformance/session.h"

namespace libra::conformance {
namespace {

constexpr std::int64_t kHugeStride = (std::int64_t{1} << 31) + 64;

HeadDims smallest_dims(const Subject& subject) {
  const std::vector<HeadDims> dims = subject.head_dims();
  return *std::min_element(dims.begin(), dims.end(),
                           [](HeadDims a, HeadDims b) { return a.qk + a.v < b.qk + b.v; });
}

DType smallest_dtype(const Subject& subject) {
  const std::vector<DType> dtypes = subject.dtypes();
  return *std::min_element(dtypes.begin(), dtypes.end(),
                           [](DType a, DType b) { return element_bytes(a) < element_bytes(b); });
}

// A tensor whose rows lie kHugeStride elements apart, in memory that is shared with others.
class SparseTensor {
 public:
  SparseTensor(const Subject& subject, const HostTensor& tensor, std::byte* first)
      : subject_(subject), view_{first,      tensor.dtype, tensor.rows, tensor.heads,
                                 tensor.dim, kHugeStride,  tensor.dim} {
    const std::vector<std::byte> bytes = DeviceTensor(subject, tensor).image();
    for (std::int64_t row = 0; row < view_.rows; ++row) {
      subject.upload(bytes.data() + row * row_bytes(), row_at(row), row_bytes());
    }
  }

  const TensorView& view() const { return view_; }

  /// The same tensor, dense.
  HostTensor download() const {
    std::vector<std::byte> bytes(static_cast<std::size_t>(view_.rows * row_bytes()));
    for (std::int64_t row = 0; row < view_.rows; ++row) {
      subject_.download(row_at(row), bytes.data() + row * row_bytes(), row_bytes());
    }
    HostTensor tensor(view_.dtype, view_.rows, view_.heads, view_.dim);
    decode(view_.dtype, bytes, tensor.values);
    return tensor;
  }

 private:
  std::int64_t row_bytes() const { return view_.heads * view_.dim * element_bytes(view_.dtype); }
  std::byte* row_at(std::int64_t row) const {
    return static_cast<std::byte*>(view_.data) + row * kHugeStride * element_bytes(view_.dtype);
  }

  const Subject& subject_;
  TensorView view_;
};

}  // namespace

void seventy_thousand_entries_of_one_token(const Subject& subject) {
  constexpr std::int64_t kEntries = 70'000;
  for (const DType dtype : subject.dtypes()) {
    Rng rng(20);
    AttentionCall call;
    for (std::int64_t i = 0; i < kEntries; ++i) call.entries.push_back({i, 1, i, 1, 0, 0});
    const Problem problem =
        make_problem(call, {dtype, smallest_dims(subject), kEntries, kEntries, 1, 1}, rng);
    const Results results = run(subject, problem);
    EXPECT_EQ(results.o.values, problem.v.values) << "a token that sees only itself gets its V";
    expect_good(subject, problem, results);
  }
}

void offsets_beyond_32_bits(const Subject& subject) {
  Rng rng(21);
  const Shape shape{smallest_dtype(subject), smallest_dims(subject), 2, 2, 2, 1};
  const Problem problem = single_entry(shape, Mask::kBottomRightCausal, rng);
  const Results blank = blank_results(problem, 0.0);
  const std::int64_t widest = element_bytes(accumulation_dtype(shape.dtype));
  constexpr std::int64_t kSlotBytes = 8192;  // one row of one tensor
  const auto memory = subject.allocate(kHugeStride * widest + 9 * kSlotBytes);
  std::int64_t slot = 0;
  const auto place = [&](const HostTensor& tensor) {
    return SparseTensor(subject, tensor, memory.get() + kSlotBytes * slot++);
  };
  const SparseTensor q = place(problem.q), k = place(problem.k), v = place(problem.v);
  const SparseTensor o = place(blank.o), lse = place(blank.lse), d_o = place(problem.d_o);
  const SparseTensor dq = place(blank.dq), dk = place(blank.dk), dv = place(blank.dv);
  const auto backend = subject.make_backend();
  const auto stream = subject.make_stream();
  backend->forward(problem.call, {q.view(), k.view(), v.view(), o.view(), lse.view()}, *stream);
  backend->backward(problem.call,
                    {q.view(), k.view(), v.view(), o.view(), lse.view(), d_o.view(), dq.view(),
                     dk.view(), dv.view()},
                    *stream);
  stream->synchronize();
  expect_good(subject, problem,
              {o.download(), lse.download(), dq.download(), dk.download(), dv.download()});
}

}  // namespace libra::conformance
