// For this room's tests: files in a temporary directory, and the message of an expected error.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "libra/base/error.h"

namespace libra {

/// A directory of its own, removed with everything in it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "libra-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  std::string write(std::string_view name, std::string_view bytes) const {
    std::string file = path_ + "/" + std::string(name);
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

 private:
  std::string path_;
};

/// The bytes of a number in this machine's order.
template <typename Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof(Number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(Number));
  return bytes;
}

/// The message of the Wanted that `act` throws; "" and a failed test if it throws none.
template <typename Wanted, typename Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const Wanted& error) {
    std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
    return message;
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace libra
