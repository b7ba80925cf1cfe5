#include "libra/cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(OutputFileTest, CommitReplacesTheOldContentAndLeavesNothingElse) {
  const TempDir folder;
  const std::string path = folder.write("report", "old and longer");
  OutputFile file(path);
  EXPECT_EQ(content_of(path), "old and longer");
  file.commit("new");
  EXPECT_EQ(content_of(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(OutputFileTest, WithoutCommitNothingIsLeft) {
  const TempDir folder;
  { const OutputFile file(folder.path() + "/report"); }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputFileTest, SymbolicLinksStayLinks) {
  const TempDir folder;
  const std::string target = folder.write("target", "old");
  const std::string link = folder.path() + "/link";
  fs::create_symlink(target, link);
  OutputFile(link).commit("new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(content_of(target), "new");
}

TEST(OutputFileTest, DevicesAreWrittenToAndStay) {
  OutputFile("/dev/null").commit("gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(OutputFileTest, WhatCannotBeWrittenIsNamed) {
  const TempDir folder;
  const std::string path = folder.path() + "/no/file";
  EXPECT_EQ(error_of<InputError>([&] { const OutputFile file(path); }),
            path + ": cannot be written: No such file or directory");
  EXPECT_NE(error_of<InputError>([&] { const OutputFile file(folder.path()); }), "");
  EXPECT_NE(error_of<InputError>([&] { const OutputFile file(""); }), "");
}

}  // namespace
}  // namespace libra::cli
