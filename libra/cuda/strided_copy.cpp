#include "libra/cuda/strided_copy.h"

#include <algorithm>

#include "libra/cuda/cuda_error.h"

namespace libra {
namespace {

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

// Rows that lie one after the other are one row.
StridedView merged(const StridedView& view) {
  if (view.rows > 1 && view.stride_bytes == view.row_bytes) {
    return {view.data, 1, view.bytes(), view.bytes()};
  }
  return view;
}

// The same bytes in rows of `row_bytes`, if they can be cut so.
bool cut(const StridedView& view, std::int64_t row_bytes, StridedView* rows) {
  if (view.row_bytes == row_bytes) {
    *rows = view;
    return true;
  }
  if (view.rows != 1 || view.row_bytes % row_bytes != 0) return false;
  *rows = {view.data, view.row_bytes / row_bytes, row_bytes, row_bytes};
  return true;
}

void copy_rows(const StridedView& from, const StridedView& to, cudaStream_t stream) {
  if (from.rows == 1) {
    check_cuda(cudaMemcpyAsync(to.data, from.data, size(from.row_bytes), cudaMemcpyDefault, stream),
               "cudaMemcpyAsync");
    return;
  }
  check_cuda(cudaMemcpy2DAsync(to.data, size(to.stride_bytes), from.data, size(from.stride_bytes),
                               size(from.row_bytes), size(from.rows), cudaMemcpyDefault, stream),
             "cudaMemcpy2DAsync");
}

// A position in a view, by bytes from its beginning.
std::byte* address(const StridedView& view, std::int64_t position) {
  return view.data + position / view.row_bytes * view.stride_bytes + position % view.row_bytes;
}
std::int64_t contiguous(const StridedView& view, std::int64_t position) {
  return view.row_bytes - position % view.row_bytes;
}

}  // namespace

void enqueue_copy(const StridedView& from, const StridedView& to, cudaStream_t stream) {
  const std::int64_t bytes = from.bytes();
  if (bytes == 0) return;
  const StridedView source = merged(from), target = merged(to);
  const std::int64_t row_bytes = std::min(source.row_bytes, target.row_bytes);
  StridedView source_rows, target_rows;
  if (cut(source, row_bytes, &source_rows) && cut(target, row_bytes, &target_rows)) {
    copy_rows(source_rows, target_rows, stream);
    return;
  }
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t run = std::min(contiguous(source, done), contiguous(target, done));
    copy_rows({address(source, done), 1, run, run}, {address(target, done), 1, run, run}, stream);
    done += run;
  }
}

}  // namespace libra
