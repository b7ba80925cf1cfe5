// The errors that Libra throws for what a caller, a file, a peer or the machine did wrong.
//
// Every message is one line that says what is wrong, where, and what would be right:
//
//   throw ConfigError("pool size 3 does not divide DP 8: P must divide DP; nearest legal: 2 or 4");
//
// Not for our own bugs: those are LIBRA_CHECK (check.h). Outcomes that a caller expects (no sample
// left, a plan that validate() finds wrong) come back as data and are no errors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace libra {

/// Base of all of them, so that a program can catch what the library reports in one place.
class Error : public std::runtime_error {
 public:
  /// Control characters, which values and paths from outside may hold, are shown as \xNN: the
  /// message stays one line, whatever it repeats.
  explicit Error(std::string_view message);
};

/// An option, or options that contradict each other. The message names the rule and the nearest
/// legal value.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A file or a value in it. `where` is the path, with a line, row or byte offset if there is one.
class InputError : public Error {
 public:
  InputError(std::string where, const std::string& what_is_wrong);
  const std::string& where() const { return where_; }

 private:
  std::string where_;
};

/// A plan that is damaged, of another version, or does not belong to what it is used with.
class PlanError : public Error {
 public:
  using Error::Error;
};

/// An exchange that failed: a peer died, disagrees, or did not come within the deadline.
class TransportError : public Error {
 public:
  using Error::Error;
};

}  // namespace libra
