// Rows of bytes at a constant distance: the one shape in which Libra moves data.
//
// Heads [2, 4) of a [tokens, heads, dim] tensor are rows = tokens, row_bytes = 2 * dim * element,
// stride_bytes = heads * dim * element. Copy engines (2-D copies), MPI (hvector) and memcpy take it
// as it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace libra {

struct StridedView {
  std::byte* data = nullptr;  ///< first byte of the first row; not owned
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;     ///< contiguous bytes of one row
  std::int64_t stride_bytes = 0;  ///< from one row's first byte to the next one's

  std::int64_t bytes() const { return rows * row_bytes; }
};

}  // namespace libra
