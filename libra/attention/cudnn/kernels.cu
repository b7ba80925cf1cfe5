#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "libra/attention/cudnn/kernels.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_error.h"

namespace libra::cudnn {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 4096;     // more than any GPU runs at a time
constexpr std::int64_t kMaxWork = 1LL << 30;  // per launch: indices are 32-bit

std::int64_t blocks_for(std::int64_t threads) { return (threads + kThreads - 1) / kThreads; }

void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

// ---- Upload

template <int kBytes>
struct Parcel {
  uint4 words[kBytes / 16];
};

template <int kBytes>
__global__ void unpack_kernel(const __grid_constant__ Parcel<kBytes> parcel, uint4* to, int words) {
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads) to[i] = parcel.words[i];
}

template <int kBytes>
void send_parcel(const std::byte* host, std::byte* to, std::int64_t bytes, cudaStream_t stream) {
  Parcel<kBytes> parcel;
  std::memcpy(&parcel, host, static_cast<std::size_t>(bytes));
  unpack_kernel<kBytes><<<1, kThreads, 0, stream>>>(parcel, reinterpret_cast<uint4*>(to),
                                                    static_cast<int>(bytes / 16));
  check_launch("upload");
}

// ---- Elements of the three formats

template <typename T>
__device__ float load(T value) {
  return static_cast<float>(value);
}

template <typename T>
__device__ T store(float value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __float2bfloat16_rn(value);
  if constexpr (std::is_same_v<T, __half>) return __float2half_rn(value);
  if constexpr (std::is_same_v<T, float>) return value;
}

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T values[kWidth];
};

template <typename T>
struct View {
  T* data;
  std::int64_t row_stride, head_stride;

  explicit View(const TensorView& tensor)
      : data(static_cast<T*>(tensor.data)),
        row_stride(tensor.row_stride),
        head_stride(tensor.head_stride) {}

  __device__ T* at(std::int64_t row, std::int64_t head, std::int64_t c) const {
    return data + row * row_stride + head * head_stride + c;
  }

  template <int kWidth>
  __device__ Vector<T, kWidth>& vector(std::int64_t row, std::int64_t head, std::int64_t c) const {
    return *reinterpret_cast<Vector<T, kWidth>*>(at(row, head, c));
  }
};

// Calls function(tag) with a null pointer of the element type.
template <typename Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFp32:
      return function(static_cast<float*>(nullptr));
    case DType::kBf16:
      return function(static_cast<__nv_bfloat16*>(nullptr));
    case DType::kFp16:
      return function(static_cast<__half*>(nullptr));
    default:
      throw ConfigError("the GPU backend works on fp32, bf16 and fp16, not on fp64");
  }
}

template <typename Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

// ---- Element by element

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
    if (*static_cast<const volatile std::uint32_t*>(condition) == 0) return;
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
  const std::int64_t max_blocks = condition == nullptr ? kMaxBlocks : 264;  // each polls the host
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

// ---- Rows without keys

template <typename T>
__global__ void clear_keyless_kernel(const KeylessRows* runs, int heads, int dim, View<T> o,
                                     View<float> lse) {
  const KeylessRows run = runs[blockIdx.x];
  const std::int64_t vectors = run.rows * heads;
  for (std::int64_t v = blockIdx.y; v < vectors; v += gridDim.y) {
    const std::int64_t row = run.row + v / heads, head = run.head + v % heads;
    for (int c = static_cast<int>(threadIdx.x); c < dim; c += static_cast<int>(blockDim.x)) {
      *o.at(row, head, c) = store<T>(0.0F);
    }
    if (threadIdx.x == 0) *lse.at(row, head, 0) = -INFINITY;
  }
}

// ---- Packed rows

// The last item whose first row is not after `row`; `first_row` names the member.
template <typename Item>
__device__ const Item& item_of(const Item* items, int count, std::int64_t row,
                               std::int64_t Item::*first_row) {
  int low = 0, high = count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (items[middle].*first_row <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return items[low];
}

// Strides and dim in units of T.
template <typename T, bool kUnpack>
__global__ void pack_kernel(PackedRows rows, int dim, View<T> tensor, T* packed) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t vector = i / dim;
  if (vector >= rows.rows * rows.heads) return;
  const std::int64_t row = vector / rows.heads;
  const PackedPiece& piece =
      item_of(rows.pieces, static_cast<int>(rows.count), row, &PackedPiece::packed_row);
  T* const element =
      tensor.at(piece.row + row - piece.packed_row, piece.head + vector % rows.heads, i % dim);
  if constexpr (kUnpack) {
    *element = packed[i];
  } else {
    packed[i] = *element;
  }
}

template <typename T, bool kUnpack>
void launch_pack(const PackedRows& rows, const TensorView& tensor, void* packed,
                 cudaStream_t stream) {
  const auto units = static_cast<std::int64_t>(sizeof(T)) / element_bytes(tensor.dtype);
  View<T> view(tensor);
  view.row_stride /= units;
  view.head_stride /= units;
  const std::int64_t dim = tensor.dim / units;
  const auto blocks = static_cast<unsigned>(blocks_for(rows.rows * rows.heads * dim));
  pack_kernel<T, kUnpack>
      <<<blocks, kThreads, 0, stream>>>(rows, static_cast<int>(dim), view, static_cast<T*>(packed));
  check_launch("pack");
}

template <bool kUnpack>
void pack_or_unpack(const PackedRows& rows, const TensorView& tensor, void* packed,
                    cudaStream_t stream) {
  if (tensor.dim == 1) {
    launch_pack<float, kUnpack>(rows, tensor, packed, stream);
  } else {
    launch_pack<uint4, kUnpack>(rows, tensor, packed, stream);
  }
}

// ---- Packed gradients

constexpr int kGradientWidth = 8;  // 16 bytes of bf16

template <typename T>
__global__ void add_gradient_kernel(PackedGradient gradient, int dim, View<float> to) {
  const int lanes = dim / kGradientWidth;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = thread / lanes;
  if (row >= gradient.rows) return;
  const int c = static_cast<int>(thread % lanes) * kGradientWidth;
  const Segment& segment =
      item_of(gradient.segments, static_cast<int>(gradient.num_segments), row, &Segment::work_row);
  const std::int64_t offset = row - segment.work_row;
  const std::int64_t* const sources = gradient.sources + segment.first_source;
  for (int head = 0; head < gradient.heads; ++head) {
    auto* const out =
        reinterpret_cast<float4*>(to.at(segment.row + offset, segment.head + head, c));
    float4 sum[2] = {out[0], out[1]};
    auto* const sums = reinterpret_cast<float*>(sum);
    for (int s = 0; s < segment.sources; ++s) {
      const T* const from = static_cast<const T*>(gradient.packed) +
                            ((sources[s] + offset) * gradient.heads + head) * dim + c;
      const auto in = *reinterpret_cast<const Vector<T, kGradientWidth>*>(from);
      for (int i = 0; i < kGradientWidth; ++i) sums[i] += load(in.values[i]);
    }
    out[0] = sum[0];
    out[1] = sum[1];
  }
}

}  // namespace

void upload(const std::byte* host, std::byte* to, std::int64_t bytes, cudaStream_t stream) {
  constexpr int kSmall = 2048, kLarge = 28 * 1024;  // kernels take up to 32 KB
  for (std::int64_t done = 0; done < bytes; done += kLarge) {
    const std::int64_t part = std::min<std::int64_t>(bytes - done, kLarge);
    if (part <= kSmall) {
      send_parcel<kSmall>(host + done, to + done, part, stream);
    } else {
      send_parcel<kLarge>(host + done, to + done, part, stream);
    }
  }
}

void clear_keyless_rows(const KeylessRows* runs, std::int64_t count, std::int32_t heads,
                        const TensorView& o, const TensorView& lse, cudaStream_t stream) {
  if (count == 0) return;
  with_type(o.dtype, [&](auto* tag) {
    using T = Pointee<decltype(tag)>;
    clear_keyless_kernel<<<dim3(static_cast<unsigned>(count), 64), 64, 0, stream>>>(
        runs, heads, o.dim, View<T>(o), View<float>(lse));
  });
  check_launch("clear_keyless_rows");
}

void pack(const PackedRows& rows, const TensorView& from, void* to, cudaStream_t stream) {
  pack_or_unpack<false>(rows, from, to, stream);
}

void unpack(const PackedRows& rows, const void* from, const TensorView& to, cudaStream_t stream) {
  pack_or_unpack<true>(rows, to, const_cast<void*>(from), stream);
}

void add_gradient(const PackedGradient& gradient, const TensorView& to, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(gradient.rows * (to.dim / kGradientWidth)));
  with_type(gradient.dtype, [&](auto* tag) {
    using T = Pointee<decltype(tag)>;
    add_gradient_kernel<T><<<blocks, kThreads, 0, stream>>>(gradient, to.dim, View<float>(to));
  });
  check_launch("add_gradient");
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
