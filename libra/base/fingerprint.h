// A 64-bit fingerprint of plain values, equal on every platform: to see that two ranks hold the
// same plan.
//
//   Fingerprint f; f.add(config.chunks); f.add(lengths); use(f.value());
//
// Not for security: whoever wants to can make two inputs collide.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace libra {

class Fingerprint {
 public:
  /// Adds one number. The order of additions counts.
  void add(std::int64_t number) { mix(static_cast<std::uint64_t>(number)); }

  /// Adds the length and then every element, so that {1},{2} and {1,2} differ.
  template <typename Int>
  void add(const std::vector<Int>& numbers) {
    add(static_cast<std::int64_t>(numbers.size()));
    for (const Int number : numbers) add(static_cast<std::int64_t>(number));
  }

  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }

  std::uint64_t value() const { return state_; }

 private:
  // splitmix64's finaliser (Steele, Lea and Flood 2014) over the running state.
  void mix(std::uint64_t number) {
    std::uint64_t z = (state_ ^ number) + 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    state_ = z ^ (z >> 31);
  }

  std::uint64_t state_ = 0x4C69627261ULL;
};

}  // namespace libra
