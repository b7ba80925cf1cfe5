// A small row-major matrix in the arithmetic type: what the kernels compute on after they have
// converted a piece of a tensor.
//
//   Tile<float> scores(keys, rows); scores.clear(); scores.row(3)[5] = 1.0F;
//
// Every row starts on a 64-byte boundary and is padded to a multiple of 64 bytes, so that loops
// over whole vectors need no tail. The padding is zero until someone writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace libra::reference {

inline constexpr std::int64_t kLineBytes = 64;

/// `columns` rounded up to whole 64-byte lines.
template <typename Acc>
constexpr std::int64_t padded(std::int64_t columns) {
  constexpr std::int64_t kPerLine = kLineBytes / static_cast<std::int64_t>(sizeof(Acc));
  return (columns + kPerLine - 1) / kPerLine * kPerLine;
}

template <typename Acc>
class Tile {
 public:
  Tile(std::int64_t rows, std::int64_t columns)
      : stride_(padded<Acc>(columns)),
        lines_(static_cast<std::size_t>(rows * stride_) / kPerLine) {}

  Acc* row(std::int64_t index) { return data() + index * stride_; }
  const Acc* row(std::int64_t index) const { return data() + index * stride_; }
  std::int64_t stride() const { return stride_; }

  /// Sets the first `rows` rows to zero, padding included.
  void clear(std::int64_t rows) {
    Acc* const first = data();
    for (std::int64_t i = 0; i < rows * stride_; ++i) first[i] = Acc{0};
  }

 private:
  static constexpr std::size_t kPerLine = static_cast<std::size_t>(kLineBytes) / sizeof(Acc);
  struct alignas(kLineBytes) Line {
    Acc values[kPerLine] = {};
  };

  Acc* data() { return reinterpret_cast<Acc*>(lines_.data()); }
  const Acc* data() const { return reinterpret_cast<const Acc*>(lines_.data()); }

  std::int64_t stride_;
  std::vector<Line> lines_;
};

}  // namespace libra::reference
