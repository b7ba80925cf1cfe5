// The order in which one epoch visits the documents, drawn only as far as it is used: the first
// documents of a shuffled corpus of millions come without shuffling all of it.
//
// Used by WindowStream.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "libra/base/rng.h"

namespace libra {

class DocumentOrder {
 public:
  struct Document {
    std::int64_t index = 0;
    std::int64_t tokens = 0;
  };

  /// `lengths` must outlive it.
  explicit DocumentOrder(const std::vector<std::int64_t>& lengths)
      : lengths_(lengths), order_(lengths.size()), rng_(0) {}
  explicit DocumentOrder(std::vector<std::int64_t>&&) = delete;

  /// Begins an epoch. A shuffled order depends on (documents, seed, epoch) alone.
  void restart(bool shuffled, std::uint64_t seed, std::int64_t epoch) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    next_ = 0;
    drawn_ = 0;
    shuffled_ = shuffled;
    rng_ = Rng(seed, static_cast<std::uint64_t>(epoch));
  }

  bool exhausted() const { return next_ == order_.size(); }

  /// The next document. Requires !exhausted(). Each comes once (Fisher-Yates, from the front).
  Document next() {
    if (next_ == drawn_) draw();
    const std::size_t at = next_++;
    return {order_[at], tokens_[at % kBlock]};
  }

 private:
  // Documents are drawn in blocks, so that the far memory of all of a block is on its way at once:
  // several times faster for millions of documents.
  static constexpr std::size_t kBlock = 64;

  void draw() {
    const std::size_t end = std::min(next_ + kBlock, order_.size());
    if (shuffled_) {
      std::array<std::size_t, kBlock> partners{};
      for (std::size_t i = next_; i < end; ++i) {
        partners[i % kBlock] = i + static_cast<std::size_t>(rng_.below(order_.size() - i));
        __builtin_prefetch(&order_[partners[i % kBlock]], 1);
      }
      for (std::size_t i = next_; i < end; ++i) std::swap(order_[i], order_[partners[i % kBlock]]);
    }
    for (std::size_t i = next_; i < end; ++i)
      tokens_[i % kBlock] = lengths_[static_cast<std::size_t>(order_[i])];
    drawn_ = end;
  }

  const std::vector<std::int64_t>& lengths_;
  std::vector<std::int64_t> order_;
  std::array<std::int64_t, kBlock> tokens_{};  // of the block that was drawn last
  std::size_t next_ = 0;
  std::size_t drawn_ = 0;
  bool shuffled_ = false;
  Rng rng_;
};

}  // namespace libra
