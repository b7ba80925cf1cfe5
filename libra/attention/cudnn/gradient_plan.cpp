#include "libra/attention/cudnn/gradient_plan.h"

#include <algorithm>

#include "libra/base/index.h"

namespace libra::cudnn {
namespace {

struct Share {
  std::int32_t head;
  std::int64_t begin, end;  // the caller's rows
  std::int64_t packed;      // the packed row of `begin`
  std::int64_t piece;       // rank in the sum
};

std::vector<Share> shares_of(const std::vector<Entry>& pieces, Side side, const Packing& packing) {
  std::vector<Share> result;
  result.reserve(pieces.size());
  for (const Entry& piece : pieces) {
    const auto rank = static_cast<std::int64_t>(result.size());
    const PieceRows run = rows_of(piece, side);
    result.push_back({run.head, run.row, run.row + run.rows, packing.rows[at(rank)], rank});
  }
  return result;
}

class Sweep {
 public:
  explicit Sweep(std::vector<Share> shares) : shares_(std::move(shares)) {
    std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
      return a.head != b.head ? a.head < b.head : a.begin < b.begin;
    });
  }

  GradientPlan run() {
    for (const Share& share : shares_) {
      if (share.head != head_) finish();
      head_ = share.head;
      advance(share.begin);
      const auto place =
          std::lower_bound(open_.begin(), open_.end(), share,
                           [](const Share& a, const Share& b) { return a.piece < b.piece; });
      open_.insert(place, share);
    }
    finish();
    return std::move(plan_);
  }

 private:
  void finish() {
    while (!open_.empty()) advance(next_end());
    row_ = 0;
  }

  std::int64_t next_end() const {
    return std::min_element(open_.begin(), open_.end(),
                            [](const Share& a, const Share& b) { return a.end < b.end; })
        ->end;
  }

  // Emits the segments from row_ to `row`.
  void advance(std::int64_t row) {
    while (!open_.empty() && row_ < row) {
      const std::int64_t end = std::min(row, next_end());
      emit(end);
      row_ = end;
      open_.erase(std::remove_if(open_.begin(), open_.end(),
                                 [end](const Share& share) { return share.end == end; }),
                  open_.end());
    }
    row_ = row;
  }

  void emit(std::int64_t end) {
    if (end == row_) return;
    plan_.segments.push_back({row_, plan_.rows, head_,
                              static_cast<std::int32_t>(plan_.sources.size()),
                              static_cast<std::int32_t>(open_.size()), 0});
    for (const Share& share : open_) {
      plan_.sources.push_back(share.packed + row_ - share.begin);
    }
    plan_.rows += end - row_;
  }

  std::vector<Share> shares_;
  std::vector<Share> open_;  // cover row_, by rank
  std::int32_t head_ = 0;
  std::int64_t row_ = 0;
  GradientPlan plan_;
};

}  // namespace

GradientPlan plan_gradients(const std::vector<Entry>& pieces, Side side, const Packing& packing) {
  return Sweep(shares_of(pieces, side, packing)).run();
}

}  // namespace libra::cudnn
