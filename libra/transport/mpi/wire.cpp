#include "libra/transport/mpi/wire.h"

#include <fmt/format.h>

#include <limits>

#include "libra/base/error.h"
#include "libra/transport/mpi/session_state.h"

namespace libra::mpi {
namespace {

constexpr std::int64_t kLargestCount = std::numeric_limits<int>::max();

}  // namespace

std::int32_t wire_tag(const Tag& tag) {
  const std::int32_t step = tag.step % (1 << 12);
  return (((step << 3 | static_cast<std::int32_t>(tag.phase)) << 8 | tag.chunk) << 4) | tag.round;
}

void check_counts(const StridedView& view) {
  if (view.rows <= kLargestCount && view.row_bytes <= kLargestCount) return;
  throw ConfigError(fmt::format(
      "a block of {} rows of {} bytes is too large for MPI: both must be at most {}; cut it into "
      "more or longer rows, or into several transfers",
      view.rows, view.row_bytes, kLargestCount));
}

WireType::WireType(const StridedView& view) {
  const bool contiguous = view.rows <= 1 || view.stride_bytes == view.row_bytes;
  if (view.bytes() == 0 || (contiguous && view.bytes() <= kLargestCount)) {
    count_ = static_cast<int>(view.bytes());
    return;
  }
  count_ = 1;
  check_mpi(MPI_Type_create_hvector(static_cast<int>(view.rows), static_cast<int>(view.row_bytes),
                                    static_cast<MPI_Aint>(view.stride_bytes), MPI_BYTE, &type_),
            "describing a strided block");
  check_mpi(MPI_Type_commit(&type_), "describing a strided block");
}

WireType::~WireType() {
  if (type_ != MPI_BYTE) MPI_Type_free(&type_);
}

}  // namespace libra::mpi
