#include <gmock/gmock.h>

#include "libra/cli/test_program.h"
#include "libra/corpus/test_files.h"

namespace libra::cli {
namespace {

using testing::HasSubstr;

TEST(CorpusCommandTest, PrintsWhatTheDataFolderSaysOfMix) {
  const Result result = libra("corpus " + mix());
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("mix: 99,484 documents, 368,180,153 tokens"));
  EXPECT_THAT(result.out, HasSubstr("median 521  mean 3700.9  p90 7,052  p99 38,033"));
  EXPECT_THAT(result.out, HasSubstr("above 32K: 40.48%, above 256K: 20.07%"));
}

TEST(CorpusCommandTest, HistogramHasTokensAndAttentionByBucket) {
  const TempDir folder;
  const auto json = json_of("corpus", {folder.write("lengths.txt", "1\n3\n8\n")});
  EXPECT_EQ(json["documents"], 3);
  EXPECT_EQ(json["tokens"], 12);
  ASSERT_EQ(json["histogram"].size(), 4U);
  EXPECT_EQ(json["histogram"][3]["begin"], 8);
  EXPECT_EQ(json["histogram"][3]["tokens"], 8);
  EXPECT_DOUBLE_EQ(json["histogram"][3]["attention_share"].get<double>(), 64.0 / 74);
  EXPECT_FALSE(json.contains("packing_report"));
}

TEST(CorpusCommandTest, SequenceLengthAddsThePackingReport) {
  const TempDir folder;
  const std::string file = folder.write("lengths.txt", "5\n4\n9\n1\n");
  const auto json = json_of("corpus --seq-len 8 --oversize split", {file});
  EXPECT_EQ(json["packing_report"]["oversize_documents"], 1);
  EXPECT_EQ(json["packing_report"]["split_samples"], 2);
  EXPECT_EQ(json["packing_report"]["tokens"], 19);
  EXPECT_THAT(libra("corpus --seq-len 8 --oversize drop", {file}).out,
              HasSubstr("1 longer than a sequence (drop)"));
}

TEST(CorpusCommandTest, SyntheticCorporaFollowTheSeed) {
  const std::string command = "corpus synthetic:paper-1m --synthetic-documents 1K --seed ";
  EXPECT_EQ(json_of(command + "1")["documents"], 1024);
  EXPECT_EQ(json_of(command + "1"), json_of(command + "1"));
  EXPECT_NE(json_of(command + "1"), json_of(command + "2"));
}

}  // namespace
}  // namespace libra::cli
