// The arithmetic rules between options, stated once: each error names the rule and the nearest
// legal value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace libra {

/// Throws ConfigError unless value >= 1.
void require_positive(std::string_view name, std::int64_t value);

/// Throws ConfigError unless value >= 0.
void require_not_negative(std::string_view name, std::int64_t value);

/// Throws ConfigError if value > limit.
void require_at_most(std::string_view name, std::int64_t value, std::int64_t limit);

/// Throws ConfigError unless divisor divides whole; the message gives the divisors of whole next to
/// `divisor`. Requires both to be positive.
void require_divides(std::string_view divisor_name, std::int64_t divisor,
                     std::string_view whole_name, std::int64_t whole);

/// "2 or 4": the legal values in [1, limit] that are closest to `value` from below and above;
/// "none" if there is none.
std::string nearest_legal(std::int64_t value, std::int64_t limit,
                          const std::function<bool(std::int64_t)>& legal);

}  // namespace libra
