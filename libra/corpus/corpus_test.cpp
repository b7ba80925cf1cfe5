#include "libra/corpus/corpus.h"

#include <gmock/gmock.h>

#include "libra/corpus/idx_reader.h"
#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;
using testing::HasSubstr;

std::string two_sequence_index() {
  return std::string(kIdxMagic) + bytes_of(std::uint64_t{1}) + '\4' + bytes_of(std::uint64_t{2}) +
         bytes_of(std::uint64_t{2}) + bytes_of(std::int32_t{3}) + bytes_of(std::int32_t{4}) +
         bytes_of(std::int64_t{0}) + bytes_of(std::int64_t{12}) + bytes_of(std::int64_t{0}) +
         bytes_of(std::int64_t{2});
}

std::string one_element_npy() {
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n";
  return std::string("\x93NUMPY\x01\0", 8) + bytes_of(static_cast<std::uint16_t>(text.size())) +
         text + "\x59";
}

TEST(ReadCorpus, PicksTheReaderByExtension) {
  const TempDir dir;
  EXPECT_EQ(read_corpus(dir.write("a.npy", one_element_npy())).lengths, Lengths{89});
  EXPECT_EQ(read_corpus(dir.write("a.idx", two_sequence_index())).lengths, Lengths{7});
  EXPECT_EQ(read_corpus(dir.write("a.jsonl", "{\"length\": 5}\n")).lengths, Lengths{5});
  EXPECT_EQ(read_corpus(dir.write("a.json", "{\"length\": 6}\n")).lengths, Lengths{6});
  EXPECT_EQ(read_corpus(dir.write("a.txt", "7\n")).lengths, Lengths{7});
  EXPECT_EQ(read_corpus(dir.write("lengths", "8\n")).lengths, Lengths{8});
}

TEST(ReadCorpus, BelievesTheFirstBytesMoreThanTheExtension) {
  const TempDir dir;
  EXPECT_EQ(read_corpus(dir.write("a.txt", one_element_npy())).lengths, Lengths{89});
  EXPECT_EQ(read_corpus(dir.write("b.jsonl", two_sequence_index())).lengths, Lengths{7});
  EXPECT_THAT(error_of<InputError>([&] { read_corpus(dir.write("c.npy", "1\n2\n3\n4\n5\n")); }),
              HasSubstr("is no NPY file"));
}

TEST(ReadCorpus, TakesAMegatronPrefixForItsIndex) {
  const TempDir dir;
  dir.write("data_text_document.idx", two_sequence_index());
  ReadOptions options;
  options.idx_unit = IdxUnit::kSequences;
  const Corpus corpus = read_corpus(dir.path() + "/data_text_document", options);
  EXPECT_EQ(corpus.lengths, (Lengths{3, 4}));
  EXPECT_EQ(corpus.name, "data_text_document");
}

TEST(ReadCorpus, SaysWhyAPathIsNoCorpus) {
  const TempDir dir;
  for (const std::string extension : {".npy", ".idx", ".jsonl", ".txt", ""}) {
    SCOPED_TRACE(extension);
    const std::string missing = dir.path() + "/missing" + extension;
    EXPECT_THAT(error_of<InputError>([&] { read_corpus(missing); }),
                HasSubstr(missing + ": no such file"));
    const std::string folder = dir.path() + "/folder" + extension;
    std::filesystem::create_directory(folder);
    EXPECT_THAT(error_of<InputError>([&] { read_corpus(folder); }),
                HasSubstr(folder + ": is a directory"));
    const std::string empty = dir.write("empty" + extension, "");
    EXPECT_THAT(error_of<InputError>([&] { read_corpus(empty); }), HasSubstr(empty + ": is empty"));
  }
  EXPECT_THAT(error_of<InputError>([] { read_corpus("/dev/null"); }),
              HasSubstr("is not a regular file"));
  EXPECT_THAT(error_of<InputError>([] { read_corpus(std::string(5000, 'x')); }),
              HasSubstr("cannot be looked at: File name too long"));
}

TEST(ReadCorpus, DrawsSyntheticCorporaByName) {
  ReadOptions options;
  options.synthetic_documents = 1000;
  const Corpus corpus = read_corpus("synthetic:paper-256k", options);
  EXPECT_EQ(corpus.name, "synthetic:paper-256k");
  EXPECT_EQ(corpus.lengths.size(), 1000U);
  EXPECT_EQ(corpus.lengths, read_corpus("synthetic:paper-256k", options).lengths);
  options.synthetic_seed = 1;
  EXPECT_NE(corpus.lengths, read_corpus("synthetic:paper-256k", options).lengths);
  EXPECT_THAT(error_of<ConfigError>([] { read_corpus("synthetic:paper"); }),
              HasSubstr("'paper': the names are paper-256k and paper-1m"));
  options.synthetic_documents = 0;
  EXPECT_THROW(read_corpus("synthetic:paper-1m", options), ConfigError);
}

TEST(ReadCorpus, ReadsTheMixCorpus) {
  const Corpus corpus = read_corpus(LIBRA_DATA_DIR "/mix.npy");
  EXPECT_EQ(corpus.name, "mix");
  EXPECT_EQ(corpus.lengths.size(), 99'484U);
}

}  // namespace
}  // namespace libra
