// For tests: a file that lives as long as a test needs it.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace libra {

/// `text` in a file of its own in the test's directory, removed at the end of the scope.
class TempFile {
 public:
  explicit TempFile(const std::string& text) : path_(unique_path()) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  // CTest runs tests at the same time, each a process that knows its own name.
  static std::string unique_path() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    return testing::TempDir() + info->test_suite_name() + "." + info->name() + ".json";
  }

  std::string path_;
};

}  // namespace libra
