// What a fuzz target may do with bytes: use them, or throw one of Libra's errors.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "libra/base/error.h"

namespace libra::fuzz {

/// Ends the program, which the fuzzer reports with the input.
inline void expect(bool fact, std::string_view what) {
  if (fact) return;
  fmt::print(stderr, "not so: {}\n", what);
  std::abort();
}

/// Whether `use` came to its end. An error must be one line that says something; what is no
/// libra::Error goes on to the fuzzer, as a crash.
template <typename Use>
bool accepted(const Use& use) {
  try {
    use();
    return true;
  } catch (const Error& error) {
    const std::string_view line = error.what();
    expect(!line.empty() && line.find('\n') == std::string_view::npos, "an error is one line");
    return false;
  }
}

}  // namespace libra::fuzz
