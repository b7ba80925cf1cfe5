// Buffers whose bytes say where they belong, so that every misplaced byte shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libra/base/strided_view.h"

namespace libra::conformance {

/// How a transfer's bytes lie in memory.
struct BlockShape {
  std::int64_t rows = 1;
  std::int64_t row_bytes = 64;
  std::int64_t gap_bytes = 0;  // between the end of a row and the start of the next
};

/// Memory of one end of a transfer. Bytes outside the rows are guarded.
class Block {
 public:
  explicit Block(const BlockShape& shape);

  /// Writes the bytes that belong to `key`.
  void fill(std::uint64_t key);

  /// The rows hold the bytes of `key`, and nothing outside them has been touched.
  bool holds(std::uint64_t key) const;
  bool untouched() const;

  StridedView view();

 private:
  BlockShape shape_;
  std::vector<std::byte> memory_;
};

}  // namespace libra::conformance
