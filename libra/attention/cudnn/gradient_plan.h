// How the gradients of a batch, which cuDNN leaves packed piece after piece, are added to the
// caller's: every row of the caller's once, over all pieces that have a share in it, in the order
// of the batch. So the sum is the same every time, whatever the pieces share.
//
//   caller's rows    |----------|-----|---------|      segments
//   piece 0          |----------------|
//   piece 1                     |---------------|      sources of the middle segment: 0, 1
#pragma once

#include <cstdint>
#include <vector>

#include "libra/attention/cudnn/packing.h"

namespace libra::cudnn {

/// Rows of the caller's tensor that the same pieces have a share in.
struct Segment {
  std::int64_t row = 0;
  std::int64_t work_row = 0;  ///< rows of all segments before it
  std::int32_t head = 0;      ///< the first of the call's heads
  std::int32_t first_source = 0;
  std::int32_t sources = 0;
  std::int32_t padding = 0;
};

struct GradientPlan {
  std::vector<Segment> segments;
  std::vector<std::int64_t> sources;  ///< packed rows that belong to a segment's first row
  std::int64_t rows = 0;              ///< of all segments
};

/// Requires pieces whose head ranges on that side are equal or disjoint. Complexity:
/// O(n log n + sources).
GradientPlan plan_gradients(const std::vector<Entry>& pieces, Side side, const Packing& packing);

}  // namespace libra::cudnn
