// Strided copies between the memories of GPUs, by their copy engines.
#pragma once

#include <cuda_runtime_api.h>

#include "libra/base/strided_view.h"

namespace libra {

/// Enqueues the copy of `from` onto `to`, which must be of as many bytes and may be cut into rows
/// differently: one 2-D copy where the rows agree, else one for each run of bytes that is
/// contiguous at both ends. Either end may be any memory that the device of `stream` reaches.
void enqueue_copy(const StridedView& from, const StridedView& to, cudaStream_t stream);

}  // namespace libra
