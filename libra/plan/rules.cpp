#include "libra/plan/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "libra/base/error.h"

namespace libra {

void require_positive(std::string_view name, std::int64_t value) {
  if (value < 1) throw ConfigError(fmt::format("{} is {}: it must be at least 1", name, value));
}

void require_not_negative(std::string_view name, std::int64_t value) {
  if (value < 0) throw ConfigError(fmt::format("{} is {}: it must not be negative", name, value));
}

void require_at_most(std::string_view name, std::int64_t value, std::int64_t limit) {
  if (value > limit)
    throw ConfigError(fmt::format("{} is {}: it may be at most {}", name, value, limit));
}

void require_divides(std::string_view divisor_name, std::int64_t divisor,
                     std::string_view whole_name, std::int64_t whole) {
  if (whole % divisor == 0) return;
  const std::string near = nearest_legal(
      divisor, whole, [whole](std::int64_t candidate) { return whole % candidate == 0; });
  throw ConfigError(fmt::format("{} {} does not divide {} {}: nearest legal value {}", divisor_name,
                                divisor, whole_name, whole, near));
}

std::string nearest_legal(std::int64_t value, std::int64_t limit,
                          const std::function<bool(std::int64_t)>& legal) {
  std::int64_t below = std::min(value, limit);
  while (below >= 1 && !legal(below)) --below;
  std::int64_t above = std::max<std::int64_t>(value, 1);
  while (above <= limit && !legal(above)) ++above;
  if (below < 1 && above > limit) return "none";
  if (below < 1) return fmt::format("{}", above);
  if (above > limit || above == below) return fmt::format("{}", below);
  return fmt::format("{} or {}", below, above);
}

}  // namespace libra
