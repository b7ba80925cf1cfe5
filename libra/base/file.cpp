#include "libra/base/file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "libra/base/error.h"

namespace libra {

std::string read_file(const std::string& path, const std::string& what) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) throw InputError(path, "is a folder: give the file of " + what);
  if (fs::is_character_file(status) || fs::is_block_file(status)) {
    throw InputError(path, "is a device: give the file of " + what);
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string bytes;
  std::array<char, 1 << 16> run = {};
  while (file.read(run.data(), run.size()), file.gcount() > 0) {
    bytes.append(run.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) {
    throw InputError(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  return bytes;
}

}  // namespace libra
