#include "libra/cli/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace(const std::string& path, const std::string& content) {
  OutputFile file(path);
  file.write(content);
  file.commit();
}

TEST(OutputFileTest, CommitReplacesTheOldContentAndLeavesNothingElse) {
  const TempDir folder;
  const std::string path = folder.write("report", "old and longer");
  OutputFile file(path);
  EXPECT_EQ(content_of(path), "old and longer");
  file.write("new");
  EXPECT_EQ(content_of(path), "old and longer");
  file.commit();
  EXPECT_EQ(content_of(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(OutputFileTest, WithoutCommitNothingIsLeft) {
  const TempDir folder;
  { const OutputFile file(folder.path() + "/report"); }
  OutputFile(folder.path() + "/report").write("text");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputFileTest, SymbolicLinksStayLinks) {
  const TempDir folder;
  const std::string target = folder.write("target", "old");
  const std::string link = folder.path() + "/link";
  fs::create_symlink(target, link);
  replace(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(content_of(target), "new");
}

TEST(OutputFileTest, DevicesAreWrittenToAndStay) {
  replace("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(OutputFileTest, TheReaderOfAPipeGetsAllInOneStream) {
  const TempDir folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = content_of(pipe); });
  const std::string content(1 << 20, 'x');
  replace(pipe, content);
  reader.join();
  EXPECT_EQ(read, content);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFileTest, TheSameFileIsKnownByAllItsNames) {
  const TempDir folder;
  const std::string path = folder.path() + "/report";
  const OutputFile file(path);
  EXPECT_TRUE(file.same_target(OutputFile(folder.path() + "/./report")));
  EXPECT_TRUE(file.same_target(OutputFile(fs::relative(path).string())));
  EXPECT_FALSE(file.same_target(OutputFile(path + "2")));
}

TEST(OutputFileTest, AFullDiskIsNamed) {
  OutputFile file("/dev/full");
  EXPECT_EQ(error_of<InputError>([&] { file.write("text"); }),
            "/dev/full: cannot be written: No space left on device");
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
