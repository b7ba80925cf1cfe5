#include "libra/attention/cudnn/ragged_tables.h"

#include <algorithm>

#include "libra/base/index.h"

namespace libra::cudnn {
namespace {

constexpr std::int64_t kAlignment = 16;

std::int64_t begin_of(const PieceRows& run, const Strides& strides) {
  return run.row * strides.row + run.head * strides.head;
}

}  // namespace

Place RaggedTables::lengths(const Batch& batch, Side side) {
  const std::int64_t count = batch.bucket.entries;
  const Place place = append(count * static_cast<std::int64_t>(sizeof(std::int32_t)));
  auto* out = slot<std::int32_t>(place);
  for (const Entry& piece : batch.pieces) {
    *out++ = static_cast<std::int32_t>(rows_of(piece, side).rows);
  }
  return place;
}

Place RaggedTables::offsets(const Batch& batch, Side side, const TensorLayout& tensor) {
  const auto& strides = tensor.strides;
  for (const Known& known : known_) {
    if (known.side == side && known.strides == strides && known.lead == tensor.lead) {
      return known.place;
    }
  }
  const std::int64_t count = batch.bucket.entries + 1;
  const Place place = append(count * static_cast<std::int64_t>(sizeof(std::int64_t)));
  auto* const out = slot<std::int64_t>(place);
  for (std::int64_t i = 0; i < count; ++i) {
    // Beyond the pieces nothing is read; any place inside the tensor will do.
    const auto last = static_cast<std::int64_t>(batch.pieces.size()) - 1;
    out[i] = tensor.lead + begin_of(rows_of(batch.pieces[at(std::min(i, last))], side), strides);
  }
  known_.push_back({side, strides, tensor.lead, place});
  return place;
}

Place RaggedTables::packed_offsets(const Batch& batch, const Packing& packing, std::int64_t row) {
  const std::int64_t count = batch.bucket.entries + 1;
  const Place place = append(count * static_cast<std::int64_t>(sizeof(std::int64_t)));
  auto* const out = slot<std::int64_t>(place);
  auto* end = out;
  for (const std::int64_t first : packing.rows) *end++ = first * row;
  std::fill(end, out + count, packing.total * row);
  return place;
}

Place RaggedTables::append(std::int64_t bytes) {
  const auto place = static_cast<std::int64_t>(bytes_.size());
  bytes_.resize(at((place + bytes + kAlignment - 1) / kAlignment * kAlignment));
  return place;
}

}  // namespace libra::cudnn
