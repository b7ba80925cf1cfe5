#include "libra/transport/inproc/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "libra/base/check.h"

namespace libra::inproc {
namespace {

// Long enough to copy at full speed, short enough (some 100 us) that a cancelled copy ends soon.
constexpr std::int64_t kBlockBytes = 1 << 20;

/// Walks over a view's bytes, one contiguous stretch after the other.
class Cursor {
 public:
  explicit Cursor(const StridedView& view) : row_(view.data), left_(view.row_bytes), view_(view) {
    const bool contiguous = view.rows <= 1 || view.stride_bytes == view.row_bytes;
    if (contiguous) view_.row_bytes = left_ = view.bytes();
  }

  std::byte* at() const { return row_ + (view_.row_bytes - left_); }
  std::int64_t contiguous() const { return left_; }

  void advance(std::int64_t bytes) {
    left_ -= bytes;
    if (left_ > 0) return;
    row_ += view_.stride_bytes;
    left_ = view_.row_bytes;
  }

 private:
  std::byte* row_;
  std::int64_t left_;  // bytes of this row that are still to come
  StridedView view_;
};

}  // namespace

bool copy_strided(const StridedView& from, const StridedView& to,
                  const std::atomic<bool>& cancelled) {
  LIBRA_CHECK(from.bytes() == to.bytes(), "{} bytes do not fit {}", from.bytes(), to.bytes());
  Cursor source(from);
  Cursor target(to);
  for (std::int64_t left = from.bytes(); left > 0;) {
    if (cancelled.load(std::memory_order_relaxed)) return false;
    const std::int64_t block =
        std::min({left, kBlockBytes, source.contiguous(), target.contiguous()});
    std::memcpy(target.at(), source.at(), static_cast<std::size_t>(block));
    left -= block;
    if (left == 0) break;  // a step past the last row could leave the array
    source.advance(block);
    target.advance(block);
  }
  return true;
}

}  // namespace libra::inproc
