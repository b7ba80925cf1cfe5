#include "tests/guarded_memory.h"

#include <algorithm>

#include "libra/base/index.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace libra::testing {
namespace {

constexpr std::byte kPattern{0xA5};
constexpr std::uintptr_t kAlignment = 256;
constexpr std::int64_t kGuardBytes = 4096;

void forbid([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(begin, at(bytes));
#endif
}

void allow([[maybe_unused]] const std::byte* begin, [[maybe_unused]] std::int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(begin, at(bytes));
#endif
}

bool is_pattern(const std::byte* begin, std::int64_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte byte) { return byte == kPattern; });
}

}  // namespace

GuardedMemory::GuardedMemory(std::int64_t bytes)
    : bytes_(bytes), memory_(at(bytes + 2 * kGuardBytes) + kAlignment, kPattern) {
  forbid_guards();
}

GuardedMemory::~GuardedMemory() { allow_guards(); }

std::byte* GuardedMemory::begin() {
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.data() + kGuardBytes);
  return memory_.data() + kGuardBytes + (kAlignment - first % kAlignment) % kAlignment;
}

std::byte* GuardedMemory::data() { return bytes_ == 0 ? nullptr : begin(); }

void GuardedMemory::forbid_guards() {
  forbid(begin() - kGuardBytes, kGuardBytes);
  forbid(begin() + bytes_, kGuardBytes);
}

void GuardedMemory::allow_guards() {
  allow(begin() - kGuardBytes, kGuardBytes);
  allow(begin() + bytes_, kGuardBytes);
}

bool GuardedMemory::guards_untouched() {
  allow_guards();
  const bool untouched =
      is_pattern(begin() - kGuardBytes, kGuardBytes) && is_pattern(begin() + bytes_, kGuardBytes);
  forbid_guards();
  return untouched;
}

void GuardedMemory::reset() { std::fill(begin(), begin() + bytes_, kPattern); }

bool GuardedMemory::written(std::int64_t offset) { return begin()[offset] != kPattern; }

std::int64_t GuardedMemory::written_end() {
  std::int64_t end = bytes_;
  while (end > 0 && !written(end - 1)) --end;
  return end;
}

}  // namespace libra::testing
