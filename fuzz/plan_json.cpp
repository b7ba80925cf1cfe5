// The JSON form of a plan.
#include "libra/plan/plan_json.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz/plan_use.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  libra::fuzz::accepted([&] {
    libra::fuzz::use_plan(libra::plan_from_json(text));
    libra::wrong_derived_fields(text);
  });
  return 0;
}
