#include "fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "libra/base/check.h"

namespace libra::fuzz {

MemoryFile::MemoryFile(const std::uint8_t* data, std::size_t size)
    : descriptor_(memfd_create("fuzz", 0)), path_("/proc/self/fd/" + std::to_string(descriptor_)) {
  LIBRA_CHECK(descriptor_ >= 0, "no file in memory");
  const ssize_t written = write(descriptor_, data, size);
  LIBRA_CHECK(written == static_cast<ssize_t>(size), "wrote {} of {} bytes", written, size);
}

MemoryFile::~MemoryFile() { close(descriptor_); }

}  // namespace libra::fuzz
