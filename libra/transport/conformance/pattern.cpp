#include "libra/transport/conformance/pattern.h"

namespace libra::conformance {
namespace {

constexpr std::byte kGuard{0xA5};
constexpr std::int64_t kMargin = 16;  // guarded bytes before the first row

std::byte expected(std::uint64_t key, std::int64_t position) {
  std::uint64_t mixed = key * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(position);
  mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9U;
  return static_cast<std::byte>(mixed >> 56);
}

}  // namespace

Block::Block(const BlockShape& shape)
    : shape_(shape),
      memory_(
          static_cast<std::size_t>(kMargin * 2 + shape.rows * (shape.row_bytes + shape.gap_bytes)),
          kGuard) {}

StridedView Block::view() {
  return {memory_.data() + kMargin, shape_.rows, shape_.row_bytes,
          shape_.row_bytes + shape_.gap_bytes};
}

void Block::fill(std::uint64_t key) {
  const StridedView to = view();
  for (std::int64_t row = 0; row < to.rows; ++row)
    for (std::int64_t i = 0; i < to.row_bytes; ++i)
      to.data[row * to.stride_bytes + i] = expected(key, row * to.row_bytes + i);
}

bool Block::holds(std::uint64_t key) const {
  Block wanted(shape_);
  wanted.fill(key);
  return memory_ == wanted.memory_;
}

bool Block::untouched() const { return memory_ == Block(shape_).memory_; }

}  // namespace libra::conformance
