// A file in memory with a path, for readers that take paths: nothing is written to a disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace libra::fuzz {

class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Can be opened any number of times while this lives.
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace libra::fuzz
