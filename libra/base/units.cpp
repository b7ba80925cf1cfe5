#include "libra/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "libra/base/error.h"

namespace libra {
namespace {

std::int64_t suffix_factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K" || suffix == "k") return 1024;
  if (suffix == "M" || suffix == "m") return 1024 * 1024;
  return 0;
}

}  // namespace

std::int64_t parse_size(std::string_view text) {
  const char* end = text.data() + text.size();
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::int64_t factor =
      suffix_factor(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  if (error != std::errc() || value < 0 || factor == 0) {
    throw ConfigError(fmt::format(
        "'{}' is not a size: write a whole number, or one with K (1024) or M (1048576), as in 256K",
        text));
  }
  if (value > std::numeric_limits<std::int64_t>::max() / factor) {
    throw ConfigError(fmt::format("'{}' is too large: the largest size is 2^63 - 1", text));
  }
  return value * factor;
}

std::string format_size(std::int64_t value) {
  constexpr std::int64_t kKilo = 1024;
  if (value != 0 && value % (kKilo * kKilo) == 0)
    return fmt::format("{}M", value / (kKilo * kKilo));
  if (value != 0 && value % kKilo == 0) return fmt::format("{}K", value / kKilo);
  return fmt::format("{}", value);
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits.at(unit));
}

}  // namespace libra
