// Numbers as people write them: "256K" tokens in, "1.5 GB" out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace libra {

/// Reads a non-negative whole number with an optional binary suffix: K is 1024, M is 1024 K (either
/// case). "256K" is 262144. Throws ConfigError that repeats `text` and shows the accepted form, on
/// overflow too.
std::int64_t parse_size(std::string_view text);

/// The shortest exact form: 262144 is "256K", 1048576 is "1M", 1000 is "1000".
std::string format_size(std::int64_t value);

/// Bytes with three digits and a decimal unit: 45'800'000'000 is "45.8 GB".
std::string format_bytes(std::int64_t bytes);

}  // namespace libra
