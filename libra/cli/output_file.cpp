#include "libra/cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "libra/base/error.h"

namespace libra::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path) {
  throw InputError(path, fmt::format("cannot be written: {}", std::strerror(errno)));
}

bool is_special(const fs::path& target) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

std::string followed(const std::string& path) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);  // else a new file's name stays relative
  if (failed) return path;
  const fs::path target = fs::weakly_canonical(absolute, failed);
  return failed ? path : target.string();
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), target_(followed(path)) {
  std::error_code ignored;
  if (path.empty() || fs::is_directory(target_, ignored)) {
    throw InputError(path, "cannot be written: it must be the name of a file");
  }
  const bool directly = is_special(target_);
  const std::string written = directly ? target_ : fmt::format("{}.{}.partial", target_, getpid());
  errno = 0;
  stream_.open(written, std::ios::binary | std::ios::trunc);
  if (!stream_) refuse(path_);
  if (!directly) temporary_ = written;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::write(std::string_view content) {
  errno = 0;
  stream_.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream_.close();
  if (!stream_) refuse(path_);
}

void OutputFile::commit() {
  if (temporary_.empty()) return;
  errno = 0;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) refuse(path_);
  temporary_.clear();
}

}  // namespace libra::cli
