#include "libra/corpus/packing.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "libra/base/error.h"
#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;
using testing::ElementsAre;
using testing::HasSubstr;

PackingOptions budget(std::int64_t tokens, Packing packing = Packing::kFirstFit,
                      Oversize oversize = Oversize::kError) {
  PackingOptions options;
  options.tokens = tokens;
  options.packing = packing;
  options.oversize = oversize;
  return options;
}

// The documents of each sequence, in order.
std::vector<Lengths> documents_of(const PackedCorpus& packed) {
  std::vector<Lengths> result;
  for (const Packed& sequence : packed.sequences) {
    Lengths& documents = result.emplace_back();
    for (const SampleOrigin& origin : sequence.origins) documents.push_back(origin.document);
  }
  return result;
}

TEST(FirstFit, TakesTheOldestOpenSequenceWithRoom) {
  const PackedCorpus packed = pack({6, 7, 3, 2, 1}, budget(10));
  EXPECT_THAT(documents_of(packed), ElementsAre(Lengths{0, 2, 4}, Lengths{1, 3}));
  EXPECT_EQ(packed.sequences[0].sequence, (PackedSequence{10, {6, 3, 1}}));
}

TEST(FirstFit, EmitsAFullSequenceAtOnce) {
  DocumentPacker packer(budget(10));
  packer.add(0, 4);
  EXPECT_FALSE(packer.take());
  packer.add(1, 10);
  ASSERT_TRUE(packer.take());
  packer.add(2, 6);
  ASSERT_TRUE(packer.take());
  packer.finish();
  EXPECT_FALSE(packer.take());
}

TEST(FirstFit, EmitsTheFullestAndThenTheOldestUnderPressure) {
  PackingOptions options = budget(10);
  options.open_sequences = 2;
  EXPECT_THAT(documents_of(pack({5, 7, 6}, options)),
              ElementsAre(Lengths{1}, Lengths{0}, Lengths{2}));
  EXPECT_THAT(documents_of(pack({6, 6, 6}, options)),
              ElementsAre(Lengths{0}, Lengths{1}, Lengths{2}));
}

TEST(FirstFit, ADocumentThatFillsASequenceDisplacesNoOpenOne) {
  PackingOptions options = budget(10);
  options.open_sequences = 1;
  EXPECT_THAT(documents_of(pack({4, 10, 6}, options)), ElementsAre(Lengths{1}, Lengths{0, 2}));
}

TEST(BestFitDecreasing, PutsTheLongestFirstIntoTheFullestWithRoom) {
  // 8 | 7 3 | 5 4 leaves room 2, 0, 1; the 1 goes to the fullest with room, and so on.
  const PackedCorpus packed = pack({1, 3, 8, 5, 7, 4, 2}, budget(10, Packing::kBestFitDecreasing));
  EXPECT_THAT(documents_of(packed), ElementsAre(Lengths{2, 6}, Lengths{3, 5, 0}, Lengths{4, 1}));
}

TEST(BestFitDecreasing, PacksEachGroupByItself) {
  PackingOptions options = budget(10, Packing::kBestFitDecreasing);
  options.group_documents = 2;
  EXPECT_THAT(documents_of(pack({3, 4, 6, 3, 7}, options)),
              ElementsAre(Lengths{1, 0}, Lengths{2, 3}, Lengths{4}));
  options.group_documents = 0;
  EXPECT_THAT(documents_of(pack({3, 4, 6, 3, 7}, options)),
              ElementsAre(Lengths{2, 1}, Lengths{3}, Lengths{4, 0}));
}

TEST(Concat, ContinuesADocumentInTheNextSequence) {
  const PackedCorpus packed = pack({4, 25, 1}, budget(10, Packing::kConcat));
  ASSERT_EQ(packed.sequences.size(), 3U);
  EXPECT_EQ(packed.sequences[0], (Packed{{10, {4, 6}}, {{0, 0}, {1, 0}}}));
  EXPECT_EQ(packed.sequences[1], (Packed{{10, {10}}, {{1, 6}}}));
  EXPECT_EQ(packed.sequences[2], (Packed{{10, {9, 1}}, {{1, 16}, {2, 0}}}));
  EXPECT_EQ(packed.report.padding_tokens, 0);
  EXPECT_EQ(packed.report.oversize_documents, 0);
}

TEST(Concat, OnlyTheLastSequenceHasPadding) {
  const PackedCorpus packed = pack({7, 137, 2041, 89}, budget(100, Packing::kConcat));
  EXPECT_EQ(packed.report.sequences, 23);
  EXPECT_EQ(packed.report.padding_tokens, 2300 - (7 + 137 + 2041 + 89));
}

TEST(Packing, KeepsEachEmptyDocumentAsASampleOfItsOwn) {
  for (const Packing packing :
       {Packing::kFirstFit, Packing::kBestFitDecreasing, Packing::kConcat}) {
    SCOPED_TRACE(packing_name(packing));
    const PackedCorpus packed = pack({0, 1, 1, 0, 0, 1}, budget(10, packing));
    ASSERT_EQ(packed.sequences.size(), 1U);
    EXPECT_EQ(packed.report.samples, 6);
    EXPECT_EQ(packed.report.empty_documents, 3);
    Lengths samples = packed.sequences[0].sequence.sample_tokens;
    EXPECT_EQ(std::count(samples.begin(), samples.end(), 0), 3);
    EXPECT_EQ(std::count(samples.begin(), samples.end(), 1), 3);
  }
}

TEST(Packing, EmptyDocumentsBehindAFullSequenceOpenNoOtherInConcat) {
  const PackedCorpus packed = pack({10, 0, 0}, budget(10, Packing::kConcat));
  EXPECT_THAT(documents_of(packed), ElementsAre(Lengths{0, 1, 2}));
}

TEST(Packing, LeavesEmptyDocumentsOutOnRequest) {
  for (const Packing packing :
       {Packing::kFirstFit, Packing::kBestFitDecreasing, Packing::kConcat}) {
    PackingOptions options = budget(10, packing);
    options.keep_empty = false;
    const PackedCorpus packed = pack({0, 1, 0}, options);
    EXPECT_THAT(documents_of(packed), ElementsAre(Lengths{1}));
    EXPECT_EQ(packed.report.empty_documents, 2);
    EXPECT_TRUE(pack({0, 0}, options).sequences.empty());
  }
}

// Three documents are longer than the sequence, one of them longer than twice it.
const Lengths kOversized = {4, 11, 25, 10, 12};

TEST(OversizeError, NamesCountLongestAndTheOtherPolicies) {
  for (const Packing packing : {Packing::kFirstFit, Packing::kBestFitDecreasing}) {
    const std::string message =
        error_of<ConfigError>([&] { pack(kOversized, budget(10, packing)); });
    EXPECT_THAT(message, HasSubstr("3 documents are longer than the packed sequence of 10 tokens"));
    EXPECT_THAT(message, HasSubstr("25"));
    for (const char* policy : {"truncate", "split", "drop"}) {
      EXPECT_THAT(message, HasSubstr(policy));
    }
  }
  DocumentPacker packer(budget(10));
  EXPECT_THAT(error_of<ConfigError>([&] { packer.add(0, 11); }), HasSubstr("1 document is longer"));
}

TEST(OversizeTruncate, KeepsTheFirstTokensAndCountsTheRest) {
  const PackedCorpus packed = pack(kOversized, budget(10, Packing::kFirstFit, Oversize::kTruncate));
  EXPECT_THAT(documents_of(packed),
              ElementsAre(Lengths{1}, Lengths{2}, Lengths{3}, Lengths{4}, Lengths{0}));
  EXPECT_EQ(packed.report.oversize_documents, 3);
  EXPECT_EQ(packed.report.oversize_tokens, 48);
  EXPECT_EQ(packed.report.truncated_documents, 3);
  EXPECT_EQ(packed.report.truncated_tokens, 18);
}

TEST(OversizeSplit, CutsIntoPiecesWithTheirOrigins) {
  const PackedCorpus packed = pack({25}, budget(10, Packing::kFirstFit, Oversize::kSplit));
  ASSERT_EQ(packed.sequences.size(), 3U);
  EXPECT_EQ(packed.sequences[0], (Packed{{10, {10}}, {{0, 0}}}));
  EXPECT_EQ(packed.sequences[1], (Packed{{10, {10}}, {{0, 10}}}));
  EXPECT_EQ(packed.sequences[2], (Packed{{10, {5}}, {{0, 20}}}));
  EXPECT_EQ(packed.report.split_documents, 1);
  EXPECT_EQ(packed.report.split_samples, 3);
}

TEST(OversizeDrop, LeavesThemOutAndCountsThem) {
  const PackedCorpus packed = pack(kOversized, budget(10, Packing::kFirstFit, Oversize::kDrop));
  EXPECT_THAT(documents_of(packed), ElementsAre(Lengths{3}, Lengths{0}));
  EXPECT_EQ(packed.report.dropped_documents, 3);
  EXPECT_EQ(packed.report.dropped_tokens, 48);
}

TEST(PackingOptions, RefusesWhatNoPackerCanWorkWith) {
  EXPECT_THAT(error_of<ConfigError>([] { pack({1}, budget(0)); }), HasSubstr("0 tokens"));
  EXPECT_NO_THROW(pack({1}, budget(kMaxSequenceTokens)));
  EXPECT_THAT(error_of<ConfigError>([] { pack({1}, budget(kMaxSequenceTokens + 1)); }),
              HasSubstr("1073741825 tokens: at most 1024M"));
  PackingOptions options = budget(10);
  options.open_sequences = 0;
  EXPECT_THAT(error_of<ConfigError>([&] { pack({1}, options); }), HasSubstr("open sequences"));
  options = budget(10);
  options.group_documents = -1;
  EXPECT_THAT(error_of<ConfigError>([&] { pack({1}, options); }), HasSubstr("groups of -1"));
}

TEST(PackingNames, AreTheInverseOfParsing) {
  for (const Packing packing :
       {Packing::kFirstFit, Packing::kBestFitDecreasing, Packing::kConcat}) {
    EXPECT_EQ(parse_packing(packing_name(packing)), packing);
  }
  for (const Oversize oversize :
       {Oversize::kError, Oversize::kTruncate, Oversize::kSplit, Oversize::kDrop}) {
    EXPECT_EQ(parse_oversize(oversize_name(oversize)), oversize);
  }
  EXPECT_THAT(error_of<ConfigError>([] { parse_packing("ffd"); }),
              HasSubstr("use one of first-fit, best-fit-decreasing, concat"));
  EXPECT_THAT(error_of<ConfigError>([] { parse_oversize("cut"); }),
              HasSubstr("use one of error, truncate, split, drop"));
}

}  // namespace
}  // namespace libra
