// NumPy files.
#include <cstddef>
#include <cstdint>

#include "fuzz/expect.h"
#include "fuzz/lengths.h"
#include "fuzz/memory_file.h"
#include "libra/corpus/npy_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const libra::fuzz::MemoryFile file(data, size);
  libra::fuzz::accepted([&] { libra::fuzz::expect_lengths(libra::read_npy(file.path())); });
  return 0;
}
