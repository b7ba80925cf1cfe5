// Opening a corpus file, with one clear error each for what is no readable, non-empty file, and
// reading numbers from it in bounded memory.
//
// Used by the readers only; not installed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

namespace libra {

class SourceFile {
 public:
  /// Throws InputError if `path` is missing, a directory, no regular file, unreadable or empty.
  explicit SourceFile(std::string path);

  const std::string& path() const { return path_; }
  std::int64_t size_bytes() const { return size_bytes_; }

  /// Bytes [offset, offset + bytes). Throws InputError, naming `what`, if the file ends earlier;
  /// so it never allocates more than the file has.
  std::string read(std::int64_t offset, std::int64_t bytes, std::string_view what);

  /// Calls `use(first byte, elements)` for successive runs of `count` elements of `element_bytes`
  /// each from `offset` on. Requires that the caller has compared the range with size_bytes().
  template <typename Use>
  void for_each_run(std::int64_t offset, std::int64_t count, std::int64_t element_bytes, Use use) {
    const std::int64_t run = kRunBytes / element_bytes;
    while (count > 0) {
      const std::int64_t elements = count < run ? count : run;
      const std::string bytes = read(offset, elements * element_bytes, "data");
      use(bytes.data(), elements);
      offset += elements * element_bytes;
      count -= elements;
    }
  }

  /// Reads the next line, without its line end, into `line`. False at the end of the file.
  bool next_line(std::string& line);

 private:
  static constexpr std::int64_t kRunBytes = std::int64_t{1} << 18;

  std::string path_;
  std::ifstream stream_;
  std::int64_t size_bytes_ = 0;
};

/// An integer stored at `data` (any alignment) in the given byte order.
template <typename Int>
Int load(const char* data, std::endian order) {
  char bytes[sizeof(Int)];
  std::memcpy(bytes, data, sizeof(Int));
  if (order != std::endian::native) std::reverse(bytes, bytes + sizeof(Int));
  Int value;
  std::memcpy(&value, bytes, sizeof(Int));
  return value;
}

template <typename Int>
Int load_little(const char* data) {
  return load<Int>(data, std::endian::little);
}

/// `text` as an error message may show it: in quotes, at most 40 bytes, unprintable ones as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace libra
