// The small kernels around cuDNN's attention. Each function enqueues on `stream` and returns;
// pointers are of the device unless said otherwise.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "libra/attention/attention.h"
#include "libra/attention/cudnn/gradient_plan.h"
#include "libra/attention/cudnn/pieces.h"

namespace libra::cudnn {

/// Loads all of this file's kernels on the current device, so that no launch has to.
void load_kernels();

/// Copies host memory to the device inside of kernel arguments, so that the caller may reuse it at
/// once: no staging memory, no event, no copy engine. Both 16-byte aligned, `bytes` a multiple of
/// 16. About 5 us of host time per 28 KB.
void upload(const std::byte* host, std::byte* to, std::int64_t bytes, cudaStream_t stream);

/// O = 0 and LSE = -inf in `heads` heads of each of `count` runs of rows.
void clear_keyless_rows(const KeylessRows* runs, std::int64_t count, std::int32_t heads,
                        const TensorView& o, const TensorView& lse, cudaStream_t stream);

/// Where a piece's rows lie in the caller's tensor and among the packed rows.
struct PackedPiece {
  std::int64_t packed_row = 0;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t head = 0;
};

/// `heads` heads of `rows` rows of `count` pieces, packed as [rows, heads, dim]. The pieces are in
/// the order of their packed rows; rows between them are left alone.
struct PackedRows {
  const PackedPiece* pieces;
  std::int64_t count;
  std::int64_t rows;
  std::int32_t heads;
};

/// Copies a tensor's rows to their packed places, or back. 16 bytes at a time, except for LSE.
void pack(const PackedRows& rows, const TensorView& from, void* to, cudaStream_t stream);
void unpack(const PackedRows& rows, const void* from, const TensorView& to, cudaStream_t stream);

/// A GradientPlan on the device, and the packed [rows, heads, dim] gradient that it distributes.
struct PackedGradient {
  const Segment* segments;
  std::int64_t num_segments;
  const std::int64_t* sources;
  std::int64_t rows;
  const void* packed;
  DType dtype;
  std::int32_t heads;
};

/// to += the packed gradient, in the plan's order. `to` is fp32, its dim a multiple of 8, its
/// vectors 16-byte aligned.
void add_gradient(const PackedGradient& gradient, const TensorView& to, cudaStream_t stream);

}  // namespace libra::cudnn
