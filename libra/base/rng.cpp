#include "libra/base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "libra/base/check.h"
#include "libra/base/fingerprint.h"

namespace libra {

// xoshiro256** (Blackman and Vigna 2018), its state filled from hashes of (seed, stream, word).
Rng::Rng(std::uint64_t seed, std::uint64_t stream) {
  for (std::int64_t word = 0; word < 4; ++word) {
    Fingerprint hash;
    hash.add(static_cast<std::int64_t>(seed));
    hash.add(static_cast<std::int64_t>(stream));
    hash.add(word);
    state_[word] = hash.value();
  }
}

std::uint64_t Rng::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::below(std::uint64_t bound) {
  LIBRA_CHECK(bound > 0, "below({}) has no value to give", bound);
  const std::uint64_t unbiased_from = (0 - bound) % bound;  // 2^64 mod bound
  for (;;) {
    const std::uint64_t bits = next();
    if (bits >= unbiased_from) return bits % bound;
  }
}

double Rng::normal() {
  // Box-Muller; the second value is thrown away so that the state stays four words.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace libra
