// Device profiles, and the times that they give.
#include <cstddef>
#include <cstdint>

#include "fuzz/expect.h"
#include "fuzz/memory_file.h"
#include "libra/cost/device_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const libra::fuzz::MemoryFile file(data, size);
  libra::fuzz::accepted([&] {
    const libra::DeviceProfile device = libra::load_device_profile(file.path());
    libra::format_device_profile(device.data());
    for (const std::int64_t tokens : {1, 1000, 1 << 24}) {
      for (const std::int32_t heads : {1, 4096}) {
        const std::int64_t ps = device.forward_ps({0, tokens}, heads);
        libra::fuzz::expect(ps > 0 && ps <= libra::DeviceProfile::kMaxEntryPs, "times are bounded");
        libra::fuzz::expect(device.backward_call_ps({{0, tokens}}, heads) > 0, "calls take time");
      }
    }
  });
  return 0;
}
