// Indices of Megatron data sets.
#include <cstddef>
#include <cstdint>

#include "fuzz/expect.h"
#include "fuzz/lengths.h"
#include "fuzz/memory_file.h"
#include "libra/corpus/idx_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const libra::fuzz::MemoryFile file(data, size);
  for (const libra::IdxUnit unit : {libra::IdxUnit::kDocuments, libra::IdxUnit::kSequences}) {
    libra::fuzz::accepted([&] { libra::fuzz::expect_lengths(libra::read_idx(file.path(), unit)); });
  }
  return 0;
}
