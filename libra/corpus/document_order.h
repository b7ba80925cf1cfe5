// The order in which one epoch visits the documents, drawn only as far as it is used: the first
// documents of a shuffled corpus of millions come without shuffling all of it.
//
// Used by WindowStream.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "libra/base/rng.h"

namespace libra {

class DocumentOrder {
 public:
  explicit DocumentOrder(std::int64_t documents)
      : order_(static_cast<std::size_t>(documents)), rng_(0) {}

  /// Begins an epoch. A shuffled order depends on (documents, seed, epoch) alone.
  void restart(bool shuffled, std::uint64_t seed, std::int64_t epoch) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    next_ = 0;
    shuffled_ = shuffled;
    rng_ = Rng(seed, static_cast<std::uint64_t>(epoch));
  }

  bool exhausted() const { return next_ == order_.size(); }

  /// The next document. Requires !exhausted(). Each comes once (Fisher-Yates, from the front).
  std::int64_t next() {
    if (shuffled_) {
      const auto ahead = static_cast<std::size_t>(rng_.below(order_.size() - next_));
      std::swap(order_[next_], order_[next_ + ahead]);
    }
    return order_[next_++];
  }

 private:
  std::vector<std::int64_t> order_;
  std::size_t next_ = 0;
  bool shuffled_ = false;
  Rng rng_;
};

}  // namespace libra
