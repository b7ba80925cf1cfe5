// LIBRA_CHECK: states what must be true if Libra itself is right. Active in every build.
//
//   LIBRA_CHECK(worker < workers, "tile {} went to worker {} of {}", tile, worker, workers);
//
// Not for input, options or the environment: those throw a libra::Error (error.h).
#pragma once

#include <fmt/format.h>

#include <stdexcept>

namespace libra {

/// A bug in Libra. Not a libra::Error: nothing that a caller did can be the cause.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace libra

/// Throws InternalError with the file, the line, the condition and the fmt-formatted message if
/// `condition` is false.
#define LIBRA_CHECK(condition, ...)                                                            \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      throw ::libra::InternalError(::fmt::format("{}:{}: {} is false: {}", __FILE__, __LINE__, \
                                                 #condition, ::fmt::format(__VA_ARGS__)));     \
    }                                                                                          \
  } while (false)
