// Memory of a GPU and host memory that a GPU reaches, owned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace libra {

/// `bytes` on `device`, contents unspecified, aligned to 256 bytes; null for 0 bytes. Freeing it
/// waits for the device. Throws DeviceError that says how much was asked for and how much is free.
std::shared_ptr<std::byte> allocate_device(std::int32_t device, std::int64_t bytes);

/// Page-locked host memory, zeroed, at the same address on the host and on every device.
std::shared_ptr<std::byte> allocate_mapped(std::int64_t bytes);

/// Between host and device memory or within either; complete on return. (cudaMemcpy alone may
/// return while bytes from pageable memory are still on their way, and streams that do not wait for
/// the default one overtake them.)
void copy_memory(const std::byte* from, std::byte* to, std::int64_t bytes);

}  // namespace libra
