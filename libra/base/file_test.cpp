#include "libra/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "libra/base/error.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

std::string complaint(const std::string& path) {
  try {
    read_file(path, "a plan");
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ReadFile, GivesEveryByte) {
  const std::string path = testing::TempDir() + "libra_file_test_" + std::to_string(getpid());
  const std::string empty;
  const std::string long_one = std::string(200'000, 'x') + std::string(3, '\0') + "end\n";
  for (const std::string& bytes : {empty, long_one}) {
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(read_file(path, "a plan"), bytes);
  }
  std::remove(path.c_str());
}

TEST(ReadFile, SaysWhatCannotBeRead) {
  EXPECT_THAT(complaint("/no/such/file"), HasSubstr("/no/such/file: cannot be read: No such file"));
  EXPECT_THAT(complaint(testing::TempDir()), HasSubstr("is a folder: give the file of a plan"));
  EXPECT_THAT(complaint("/dev/zero"), HasSubstr("is a device: give the file of a plan"));
  EXPECT_THAT(complaint("/proc/self/mem"), HasSubstr("cannot be read")) << "it opens";
}

}  // namespace
}  // namespace libra
