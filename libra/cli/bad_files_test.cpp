// Every class of broken file: one line with the path, exit code 2, nothing written.
#include <gmock/gmock.h>

#include <filesystem>

#include "libra/cli/test_program.h"
#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

namespace fs = std::filesystem;

std::string npy(const std::string& dtype, const std::string& shape, const std::string& data) {
  std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + bytes_of(static_cast<std::uint16_t>(header.size())) +
         header + data;
}

std::string idx(std::uint64_t sequences) {
  return std::string("MMIDIDX\0\0", 9) + bytes_of(std::uint64_t{1}) + '\x04' + bytes_of(sequences) +
         bytes_of(std::uint64_t{2}) + bytes_of(std::int32_t{7});
}

struct Case {
  std::string name;
  std::string bytes;
  std::string wanted;
};

std::vector<Case> broken_corpora() {
  return {{"cut.idx", idx(1), "cut.idx"},
          {"huge.idx", idx(std::uint64_t{1} << 60), "huge.idx"},
          {"negative.txt", "5\n-3\n", "-3"},
          {"negative.npy", npy("<i8", "(1,)", bytes_of(std::int64_t{-3})), "-3"},
          {"plane.npy", npy("<i4", "(1, 1)", bytes_of(std::int32_t{5})), "plane.npy"},
          {"object.npy", npy("|O", "(1,)", "x"), "object.npy"},
          {"cut.npy", npy("<i8", "(2,)", bytes_of(std::int64_t{3})), "cut.npy"},
          {"words.txt", "12\nhello\n", "hello"},
          {"words.jsonl", "{\"length\": \"long\"}\n", "words.jsonl"},
          {"empty.txt", "", "empty.txt"},
          {"empty.npy", "", "empty.npy"}};
}

void expect_nothing_but(const TempDir& folder, const std::string& file) {
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), file) << "was left behind";
  }
}

TEST(BadFilesTest, BrokenCorporaAreRefusedByEveryCommandAndNothingIsWritten) {
  for (const Case& c : broken_corpora()) {
    SCOPED_TRACE(c.name);
    const TempDir folder;
    const std::string file = folder.write(c.name, c.bytes);
    const std::string json = folder.path() + "/out.json";
    expect_refused(libra("corpus", {file, "--json", json}), c.wanted);
    const std::string job = " --seq-len 1K --gbs 2 --dp 2 --cp 1 --pool 2";
    expect_refused(libra("plan" + job,
                         {"--corpus", file, "--json", json, "--save", folder.path() + "/plan.bin"}),
                   c.wanted);
    expect_refused(libra("run" + job, {"--corpus", file, "--json", json, "--trace",
                                       folder.path() + "/trace.json"}),
                   c.wanted);
    expect_nothing_but(folder, c.name);
  }
}

TEST(BadFilesTest, MissingFilesAreNamed) {
  expect_refused(libra("corpus nowhere.npy"), "nowhere.npy: no such file");
  expect_refused(libra("show nowhere.plan"), "nowhere.plan: cannot be read");
  expect_refused(libra("validate nowhere.plan"), "nowhere.plan: cannot be read");
  expect_refused(libra("corpus synthetic:other"), "paper-256k and paper-1m");
}

TEST(BadFilesTest, FilesThatAreNoPlansAreRefused) {
  const TempDir folder;
  for (const Case& c :
       std::vector<Case>{{"empty", "", "not a plan"},
                         {"text", "hello", "not a plan"},
                         {"open.json", "{\"format\": ", "not JSON"},
                         {"other.json", "{\"format\": 1}", "not a plan"},
                         {"bare.json", "{\"format\": \"libra-plan-3\"}", "field"}}) {
    const std::string file = folder.write(c.name, c.bytes);
    expect_refused(libra("show", {file}), file + ": ");
    expect_refused(libra("validate", {file}), c.wanted);
  }
  expect_refused(libra("show", {folder.path()}), "is a folder");
  expect_refused(libra("show /dev/zero"), "/dev/zero: is a device");
}

TEST(BadFilesTest, TargetsThatCannotBeWrittenAreRefusedBeforeTheWork) {
  const TempDir folder;
  const std::string nowhere = folder.path() + "/no/such/file";
  expect_refused(libra("corpus " + mix(), {"--json", nowhere}), nowhere + ": cannot be written");
  expect_refused(libra("plan " + small_job(), {"--save", nowhere}), "cannot be written");
  expect_refused(libra("run " + small_job(), {"--trace", nowhere}), "cannot be written");
  expect_refused(libra("plan " + small_job(), {"--save", folder.path()}), "the name of a file");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace libra::cli
