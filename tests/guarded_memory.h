// Memory of an exact size between guard bytes, filled with a pattern: shows who writes outside, and
// how much of the inside is used. Under AddressSanitizer touching a guard, reading included, is an
// error at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace libra::testing {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// 256-byte aligned; null if it has no bytes.
  std::byte* data();
  std::int64_t bytes() const { return bytes_; }

  /// Whether no guard byte has changed.
  bool guards_untouched();

  /// Writes the pattern everywhere.
  void reset();

  /// Whether a byte inside differs from the pattern. No finite double or float of everyday size
  /// ends in the pattern.
  bool written(std::int64_t offset);

  /// One past the last written byte; 0 if there is none.
  std::int64_t written_end();

 private:
  std::byte* begin();
  void forbid_guards();
  void allow_guards();

  std::int64_t bytes_;
  std::vector<std::byte> memory_;
};

}  // namespace libra::testing
