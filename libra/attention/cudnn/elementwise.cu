#include <algorithm>
#include <cmath>

#include "libra/attention/cudnn/device_view.cuh"
#include "libra/attention/cudnn/elementwise.h"

namespace libra::cudnn {
namespace {

constexpr std::int64_t kMaxConditionalBlocks = 16;
constexpr std::int64_t kMaxBlocks = 4096;     // more than any GPU runs at a time
constexpr std::int64_t kMaxWork = 1LL << 30;  // per launch: indices are 32-bit

template <typename T, int kWidth>
struct Fill {
  View<T> to;
  float value;
  __device__ void operator()(std::int64_t row, std::int64_t head, std::int64_t c) const {
    Vector<T, kWidth> out;
    for (T& element : out.values) element = store<T>(value);
    to.template vector<kWidth>(row, head, c) = out;
  }
};

template <typename From, typename To, int kWidth>
struct Convert {
  View<From> from;
  View<To> to;
  __device__ void operator()(std::int64_t row, std::int64_t head, std::int64_t c) const {
    const Vector<From, kWidth> in = from.template vector<kWidth>(row, head, c);
    Vector<To, kWidth> out;
    for (int i = 0; i < kWidth; ++i) out.values[i] = store<To>(load(in.values[i]));
    to.template vector<kWidth>(row, head, c) = out;
  }
};

template <int kWidth>
struct Add {
  View<float> from, to;
  __device__ void operator()(std::int64_t row, std::int64_t head, std::int64_t c) const {
    const Vector<float, kWidth> in = from.vector<kWidth>(row, head, c);
    Vector<float, kWidth> out = to.vector<kWidth>(row, head, c);
    for (int i = 0; i < kWidth; ++i) out.values[i] += in.values[i];
    to.vector<kWidth>(row, head, c) = out;
  }
};

struct Extent {
  std::int64_t first_row;
  unsigned rows, heads, vectors;  // vectors of a (row, head)
  int width;
};

template <typename Function>
__global__ void for_each_kernel(Extent extent, Function function, const std::uint32_t* condition) {
  if (condition != nullptr) {
    __shared__ std::uint32_t wanted;
    if (threadIdx.x == 0) wanted = *static_cast<const volatile std::uint32_t*>(condition);
    __syncthreads();
    if (wanted == 0) return;
  }
  const unsigned work = extent.rows * extent.heads * extent.vectors;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < work; i += gridDim.x * kThreads) {
    const unsigned vector = i / extent.vectors;
    function(extent.first_row + vector / extent.heads, vector % extent.heads,
             std::int64_t{i % extent.vectors} * extent.width);
  }
}

// In launches of at most kMaxWork vectors each.
template <typename Function>
void for_each(const TensorView& shape, int width, const Function& function, cudaStream_t stream,
              const std::uint32_t* condition = nullptr) {
  const std::int64_t vectors = shape.dim / width;
  const std::int64_t per_row = shape.heads * vectors;
  if (per_row == 0) return;
  const std::int64_t rows_at_once = std::max<std::int64_t>(kMaxWork / per_row, 1);
  // A condition lies in host memory, and every block's look at it takes a microsecond.
  const std::int64_t max_blocks = condition == nullptr ? kMaxBlocks : kMaxConditionalBlocks;
  for (std::int64_t row = 0; row < shape.rows; row += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, shape.rows - row);
    const Extent extent{row, static_cast<unsigned>(rows), static_cast<unsigned>(shape.heads),
                        static_cast<unsigned>(vectors), width};
    const std::int64_t blocks = std::min(blocks_for(rows * per_row), max_blocks);
    for_each_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(extent, function,
                                                                            condition);
    check_launch("elementwise kernel");
  }
}

// Four elements at a time where every vector of the view is aligned for it.
bool is_wide(const TensorView& view) {
  return view.dim % 4 == 0 && view.row_stride % 4 == 0 && view.head_stride % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
}

template <typename Function>
void load_elementwise() {
  load_kernel(&for_each_kernel<Function>);
}

template <typename From>
void load_conversions() {
  for_each_type([](auto* tag) {
    using To = Pointee<decltype(tag)>;
    load_elementwise<Convert<From, To, 1>>();
    load_elementwise<Convert<From, To, 4>>();
  });
}

void fill_if(const std::uint32_t* condition, const TensorView& tensor, float value,
             cudaStream_t stream) {
  with_type(tensor.dtype, [&](auto* tag) {
    using T = Pointee<decltype(tag)>;
    if (is_wide(tensor)) {
      for_each(tensor, 4, Fill<T, 4>{View<T>(tensor), value}, stream, condition);
    } else {
      for_each(tensor, 1, Fill<T, 1>{View<T>(tensor), value}, stream, condition);
    }
  });
}

}  // namespace

void load_elementwise_kernels() {
  load_elementwise<Add<1>>();
  load_elementwise<Add<4>>();
  for_each_type([](auto* tag) {
    using T = Pointee<decltype(tag)>;
    load_elementwise<Fill<T, 1>>();
    load_elementwise<Fill<T, 4>>();
    load_conversions<T>();
  });
}

void fill(const TensorView& tensor, double value, cudaStream_t stream) {
  fill_if(nullptr, tensor, static_cast<float>(value), stream);
}

void add(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  if (is_wide(from) && is_wide(to)) {
    for_each(to, 4, Add<4>{View<float>(from), View<float>(to)}, stream);
  } else {
    for_each(to, 1, Add<1>{View<float>(from), View<float>(to)}, stream);
  }
}

void convert(const TensorView& from, const TensorView& to, cudaStream_t stream) {
  with_type(from.dtype, [&](auto* from_tag) {
    with_type(to.dtype, [&](auto* to_tag) {
      using From = Pointee<decltype(from_tag)>;
      using To = Pointee<decltype(to_tag)>;
      if (is_wide(from) && is_wide(to)) {
        for_each(to, 4, Convert<From, To, 4>{View<From>(from), View<To>(to)}, stream);
      } else {
        for_each(to, 1, Convert<From, To, 1>{View<From>(from), View<To>(to)}, stream);
      }
    });
  });
}

void poison_if(const std::uint32_t* flag, const TensorView& tensor, cudaStream_t stream) {
  fill_if(flag, tensor, NAN, stream);
}

}  // namespace libra::cudnn
