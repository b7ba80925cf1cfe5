// memcpy between two strided views of equally many bytes, which may be cut into rows differently.
#pragma once

#include <atomic>

#include "libra/base/strided_view.h"

namespace libra::inproc {

/// Copies `from` to `to`, row by row and at most a megabyte at a time; false if `cancelled` was
/// seen before the end. Requires from.bytes() == to.bytes() and no overlap.
bool copy_strided(const StridedView& from, const StridedView& to,
                  const std::atomic<bool>& cancelled);

}  // namespace libra::inproc
