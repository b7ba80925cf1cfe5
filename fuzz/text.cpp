// Text, one length a line.
#include <cstddef>
#include <cstdint>

#include "fuzz/expect.h"
#include "fuzz/lengths.h"
#include "fuzz/memory_file.h"
#include "libra/corpus/text_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const libra::fuzz::MemoryFile file(data, size);
  libra::fuzz::accepted([&] { libra::fuzz::expect_lengths(libra::read_text(file.path())); });
  return 0;
}
