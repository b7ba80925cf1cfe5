// The binary form of a plan.
#include "libra/plan/plan_binary.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/plan_use.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  libra::fuzz::accepted(
      [&] { libra::fuzz::use_plan(libra::decode_plan(std::as_bytes(std::span(data, size)))); });
  return 0;
}
