#include <algorithm>
#include <cmath>
#include <cstring>

#include "libra/attention/cudnn/device_view.cuh"
#include "libra/attention/cudnn/kernels.h"

namespace libra::cudnn {
namespace {

// ---- Upload

constexpr int kSmallParcel = 2048, kLargeParcel = 28 * 1024;  // kernels take up to 32 KB

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
  if (row - piece.packed_row >= piece.rows) return;  // between pieces
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

template <typename T>
void load_typed_kernels() {
  load_kernel(&clear_keyless_kernel<T>);
  load_kernel(&add_gradient_kernel<T>);
}

}  // namespace

void load_kernels() {
  load_kernel(&unpack_kernel<kSmallParcel>);
  load_kernel(&unpack_kernel<kLargeParcel>);
  load_kernel(&pack_kernel<float, false>);
  load_kernel(&pack_kernel<float, true>);
  load_kernel(&pack_kernel<uint4, false>);
  load_kernel(&pack_kernel<uint4, true>);
  for_each_type([](auto* tag) { load_typed_kernels<Pointee<decltype(tag)>>(); });
}

void upload(const std::byte* host, std::byte* to, std::int64_t bytes, cudaStream_t stream) {
  for (std::int64_t done = 0; done < bytes; done += kLargeParcel) {
    const std::int64_t part = std::min<std::int64_t>(bytes - done, kLargeParcel);
    if (part <= kSmallParcel) {
      send_parcel<kSmallParcel>(host + done, to + done, part, stream);
    } else {
      send_parcel<kLargeParcel>(host + done, to + done, part, stream);
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

}  // namespace libra::cudnn
