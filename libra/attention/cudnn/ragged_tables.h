// What the kernels of one batch read besides tensors: lengths, offsets and lists, laid out in one
// block that goes to the device in one upload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "libra/attention/cudnn/batches.h"
#include "libra/attention/cudnn/packing.h"
#include "libra/attention/cudnn/pass_key.h"

namespace libra::cudnn {

/// A table's place in the block, in bytes from its start.
using Place = std::int64_t;

class RaggedTables {
 public:
  /// int32[entries of the bucket]; 0 beyond the pieces.
  Place lengths(const Batch& batch, Side side);

  /// int64[entries of the bucket + 1]: where each piece begins in a tensor of this layout.
  Place offsets(const Batch& batch, Side side, const TensorLayout& tensor);

  /// The same in a packed tensor with rows of `row` elements.
  Place packed_offsets(const Batch& batch, const Packing& packing, std::int64_t row);

  template <typename T>
  Place list(const std::vector<T>& items) {
    const Place place = append(static_cast<std::int64_t>(items.size() * sizeof(T)));
    if (!items.empty()) std::memcpy(bytes_.data() + place, items.data(), items.size() * sizeof(T));
    return place;
  }

  /// The block: a multiple of 16 bytes.
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  struct Known {
    Side side = Side::kQueries;
    Strides strides;
    std::int64_t lead = 0;
    Place place = 0;
  };

  Place append(std::int64_t bytes);
  template <typename T>
  T* slot(Place place) {
    return reinterpret_cast<T*>(bytes_.data() + place);
  }

  std::vector<std::byte> bytes_;
  std::vector<Known> known_;  // tensors of equal strides share their offsets
};

}  // namespace libra::cudnn
