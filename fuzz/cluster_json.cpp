// Cluster files.
#include <cstddef>
#include <cstdint>

#include "fuzz/expect.h"
#include "fuzz/memory_file.h"
#include "libra/cost/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const libra::fuzz::MemoryFile file(data, size);
  libra::fuzz::accepted([&] {
    const libra::Cluster cluster = libra::load_cluster(file.path());
    libra::validate(cluster);
    libra::format_cluster(cluster);
  });
  return 0;
}
