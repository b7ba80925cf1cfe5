// LIBRA_MATRIX_FRACTION=n: of large sets of cases only every n-th, for builds that are many times
// slower.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace libra::testing {

inline std::int64_t matrix_fraction() {
  const char* text = std::getenv("LIBRA_MATRIX_FRACTION");
  return text == nullptr ? 1 : std::max(1L, std::strtol(text, nullptr, 10));
}

/// A number of cases, likewise; at least one.
inline std::int64_t fraction_of(std::int64_t cases) {
  return std::max<std::int64_t>(1, cases / matrix_fraction());
}

}  // namespace libra::testing
