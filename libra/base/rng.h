// Seeded random numbers whose values do not depend on the standard library: std's engines are
// portable, its distributions are not, so the distributions here are our own.
//
//   Rng rng(seed); double u = rng.uniform(); rng.shuffle(order);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace libra {

class Rng {
 public:
  /// Every (seed, stream) pair is an independent sequence: one seed serves several purposes or
  /// epochs.
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0);

  /// 64 random bits.
  std::uint64_t next();

  /// In [0, 1), a multiple of 2^-53.
  double uniform();

  /// In [0, bound), without bias. Requires bound > 0.
  std::uint64_t below(std::uint64_t bound);

  /// Standard normal. Uses libm's log, sqrt and cos: equal up to their last bit across platforms.
  double normal();

  /// A uniformly random order (Fisher-Yates).
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      using std::swap;
      swap(items[i - 1], items[static_cast<std::size_t>(below(i))]);
    }
  }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace libra
