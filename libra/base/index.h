// Counts and ids are signed and 64- or 32-bit in Libra; containers index with std::size_t. at()
// goes from one to the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace libra {

/// `values[at(worker)]`. Requires index >= 0; a negative one is out of every container's bounds.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace libra
