#include "libra/corpus/source_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "libra/base/error.h"

namespace libra {
namespace {

void require_regular_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::none)  // the name is too long, a folder closed
    throw InputError(path, "cannot be looked at: " + error.message());
  if (!std::filesystem::exists(status)) {
    throw InputError(path, "no such file: give a corpus file or synthetic:NAME");
  }
  if (std::filesystem::is_directory(status)) {
    throw InputError(path, "is a directory: give one file of sample lengths in it");
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw InputError(path, "is not a regular file: save the lengths to a file first");
  }
}

}  // namespace

SourceFile::SourceFile(std::string path) : path_(std::move(path)) {
  require_regular_file(path_);
  stream_.open(path_, std::ios::binary);
  if (!stream_) throw InputError(path_, "cannot be opened: is it readable for this user?");
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error) throw InputError(path_, "its size cannot be read: " + error.message());
  if (size == 0) throw InputError(path_, "is empty: a corpus needs at least one length");
  size_bytes_ = static_cast<std::int64_t>(size);
}

std::string SourceFile::read(std::int64_t offset, std::int64_t bytes, std::string_view what) {
  if (bytes > size_bytes_ - offset) {
    throw InputError(path_, fmt::format("is truncated: {} needs bytes {} to {}, the file has {}",
                                        what, offset, offset + bytes, size_bytes_));
  }
  std::string buffer(static_cast<std::size_t>(bytes), '\0');
  stream_.clear();
  stream_.seekg(offset);
  stream_.read(buffer.data(), bytes);
  if (stream_.gcount() != bytes) {
    throw InputError(path_,
                     fmt::format("cannot be read at byte {}: did it change meanwhile?", offset));
  }
  return buffer;
}

bool SourceFile::next_line(std::string& line) {
  if (!std::getline(stream_, line)) {
    if (stream_.bad()) throw InputError(path_, "cannot be read to its end");
    return false;
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return true;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool printable = byte >= 0x20 && byte < 0x7F;
    shown += printable ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return shown + (text.size() > kShown ? "...'" : "'");
}

}  // namespace libra
