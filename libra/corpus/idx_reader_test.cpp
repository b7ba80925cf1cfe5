#include "libra/corpus/idx_reader.h"

#include <gmock/gmock.h>

#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;
using testing::HasSubstr;

// An index as a test wants it, right or wrong.
struct Index {
  std::string magic{kIdxMagic};
  std::uint64_t version = 1;
  std::uint8_t dtype = 4;
  std::vector<std::int32_t> lengths = {100, 0, 412, 89};
  std::vector<std::int64_t> documents = {0, 1, 1, 4};
  std::uint64_t sequence_count = 4;
  std::uint64_t index_count = 4;
  std::string tail;

  std::string bytes() const {
    std::string out = magic + bytes_of(version) + bytes_of(dtype) + bytes_of(sequence_count) +
                      bytes_of(index_count);
    for (const std::int32_t length : lengths) out += bytes_of(length);
    std::int64_t pointer = 0;
    for (const std::int32_t length : lengths) {
      out += bytes_of(pointer);
      pointer += 4 * std::int64_t{length};
    }
    for (const std::int64_t index : documents) out += bytes_of(index);
    return out + tail;
  }
};

class IdxReader : public testing::Test {
 protected:
  Lengths read(const Index& index, IdxUnit unit = IdxUnit::kDocuments) {
    return read_idx(dir.write("x.idx", index.bytes()), unit);
  }
  std::string error(const std::string& bytes) {
    const std::string path = dir.write("x.idx", bytes);
    std::string message = error_of<InputError>([&] { read_idx(path, IdxUnit::kDocuments); });
    EXPECT_THAT(message, HasSubstr(path + ": "));
    EXPECT_EQ(message, error_of<InputError>([&] { read_idx(path, IdxUnit::kSequences); }));
    return message;
  }

  TempDir dir;
};

TEST_F(IdxReader, SumsTheSequencesOfEachDocument) { EXPECT_EQ(read({}), (Lengths{100, 0, 501})); }

TEST_F(IdxReader, OffersSequencesAsTheUnit) {
  EXPECT_EQ(read({}, IdxUnit::kSequences), (Lengths{100, 0, 412, 89}));
}

TEST_F(IdxReader, StepsOverTheModesOfMultimodalIndices) {
  Index index;
  index.tail = std::string(4, '\1');
  EXPECT_EQ(read(index), (Lengths{100, 0, 501}));
}

TEST_F(IdxReader, ReadsMoreThanOneRunOfElements) {
  Index index;
  index.lengths.assign(200'000, 3);
  index.documents.clear();
  for (std::int64_t i = 0; i <= 200'000; i += 2) index.documents.push_back(i);
  index.sequence_count = 200'000;
  index.index_count = index.documents.size();
  EXPECT_EQ(read(index), Lengths(100'000, 6));
}

TEST_F(IdxReader, RefusesEveryTruncation) {
  const std::string good = Index{}.bytes();
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    error(good.substr(0, bytes));
  }
}

TEST_F(IdxReader, RefusesBytesThatBelongToNothing) {
  for (const std::size_t extra : {1U, 3U, 5U, 8U}) {
    Index index;
    index.tail = std::string(extra, '\0');
    EXPECT_THAT(error(index.bytes()), HasSubstr("after its last array"));
  }
}

TEST_F(IdxReader, ComparesCountsWithTheFileBeforeAllocating) {
  for (const std::uint64_t count :
       {std::uint64_t{5}, std::uint64_t{1} << 40, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    SCOPED_TRACE(count);
    Index sequences;
    sequences.sequence_count = count;
    EXPECT_THAT(error(sequences.bytes()), HasSubstr("truncated or damaged"));
    Index indices;
    indices.index_count = count;
    EXPECT_THAT(error(indices.bytes()), HasSubstr("truncated or damaged"));
  }
}

TEST_F(IdxReader, RefusesAnotherMagicVersionOrDtype) {
  Index index;
  index.magic[6] = 'Y';
  EXPECT_THAT(error(index.bytes()), HasSubstr("no Megatron index"));
  index = {};
  index.version = 2;
  EXPECT_THAT(error(index.bytes()), HasSubstr("version 2"));
  for (const char dtype : {'\0', '\x09', '\xFF'}) {
    index = {};
    index.dtype = static_cast<std::uint8_t>(dtype);
    EXPECT_THAT(error(index.bytes()), HasSubstr("dtype code"));
  }
}

TEST_F(IdxReader, RefusesDocumentIndicesThatAreNoPartition) {
  for (const Lengths& documents :
       {Lengths{1, 1, 2, 4}, Lengths{0, 2, 1, 4}, Lengths{0, 1, 2, 3}, Lengths{0, 1, 2, 5},
        Lengths{0, 5, 2, 4}, Lengths{0, -1, 2, 4}, Lengths{-1, 0, 2, 4}, Lengths{0, 4, 4, -4}}) {
    SCOPED_TRACE(testing::PrintToString(documents));
    Index index;
    index.documents = documents;
    EXPECT_THAT(error(index.bytes()), HasSubstr("document index"));
  }
}

TEST_F(IdxReader, NamesTheSequenceOfANegativeLength) {
  Index index;
  index.lengths[2] = -5;
  EXPECT_THAT(error(index.bytes()), HasSubstr("sequence 2: length -5 is negative"));
}

TEST_F(IdxReader, RefusesAnIndexOfNothing) {
  Index index;
  index.lengths.clear();
  index.sequence_count = 0;
  index.documents = {0};
  index.index_count = 1;
  EXPECT_THAT(error(index.bytes()), HasSubstr("holds no document"));
  index.documents.clear();
  index.index_count = 0;
  EXPECT_THAT(error(index.bytes()), HasSubstr("no document indices"));
}

}  // namespace
}  // namespace libra
