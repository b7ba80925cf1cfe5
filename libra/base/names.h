// The words that users write for an enumeration's values: one table serves printing, parsing and
// the error that lists them.
//
//   constexpr Names<Fetch, 2> kFetches = {{{Fetch::kWhole, "whole"}, {Fetch::kPrefix, "prefix"}}};
//   name_of(kFetches, Fetch::kWhole)              // "whole"
//   parse_name(kFetches, "fetch", "prefix")       // Fetch::kPrefix
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"

namespace libra {

template <typename Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

/// Requires that `value` is in the table.
template <typename Enum, std::size_t N>
std::string_view name_of(const Names<Enum, N>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  LIBRA_CHECK(false, "value {} has no name", static_cast<int>(value));
  return {};
}

/// Throws ConfigError that says what `text` should be (`kind`) and lists the names.
template <typename Enum, std::size_t N>
Enum parse_name(const Names<Enum, N>& names, std::string_view kind, std::string_view text) {
  std::string known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    known.append(known.empty() ? "" : ", ").append(name);
  }
  throw ConfigError("'" + std::string(text) + "' is not a " + std::string(kind) + ": use one of " +
                    known);
}

}  // namespace libra
