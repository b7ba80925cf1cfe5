#include "libra/corpus/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "libra/base/rng.h"
#include "libra/corpus/corpus.h"

namespace libra {
namespace {

// The figures that data/README.md states.
TEST(CorpusStatistics, AgreesWithThePublishedFiguresOfMix) {
  const CorpusStatistics s = corpus_statistics(read_corpus(LIBRA_DATA_DIR "/mix.npy").lengths);
  EXPECT_EQ(s.documents, 99'484);
  EXPECT_EQ(s.tokens, 368'180'153);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 521);
  EXPECT_EQ(s.p90, 7'052);
  EXPECT_EQ(s.p99, 38'033);
  EXPECT_EQ(s.p999, 280'217);
  EXPECT_EQ(s.max, 1'048'576);
  EXPECT_NEAR(s.mean, 3700.9, 0.05);
  EXPECT_NEAR(s.share_above_32k, 0.4048, 0.00005);
  EXPECT_NEAR(s.share_above_256k, 0.2007, 0.00005);
}

TEST(CorpusStatistics, QuantilesAreNearestRanks) {
  const CorpusStatistics even = corpus_statistics({40, 10, 30, 20});
  EXPECT_EQ(even.median, 20);
  EXPECT_EQ(even.p90, 40);
  EXPECT_EQ(even.min, 10);
  EXPECT_EQ(corpus_statistics({5}).p999, 5);
  EXPECT_EQ(corpus_statistics({3, 1, 2}).median, 2);
}

TEST(CorpusStatistics, QuantilesAgreeWithASortedListForEverySize) {
  for (std::size_t size = 1; size <= 2000; size += size < 50 ? 1 : 97) {
    SCOPED_TRACE(size);
    Rng rng(size);
    std::vector<std::int64_t> lengths(size);
    for (std::int64_t& length : lengths) length = static_cast<std::int64_t>(rng.below(1000));
    const CorpusStatistics s = corpus_statistics(lengths);
    std::sort(lengths.begin(), lengths.end());
    const auto covers = [&](std::int64_t value, std::size_t permille) {
      const auto up_to = std::upper_bound(lengths.begin(), lengths.end(), value);
      const auto below = std::lower_bound(lengths.begin(), lengths.end(), value);
      const auto reached = static_cast<std::size_t>(up_to - lengths.begin()) * 1000;
      const auto missed = static_cast<std::size_t>(below - lengths.begin()) * 1000;
      return reached >= permille * size && missed < permille * size;
    };
    EXPECT_TRUE(covers(s.median, 500));
    EXPECT_TRUE(covers(s.p90, 900));
    EXPECT_TRUE(covers(s.p99, 990));
    EXPECT_TRUE(covers(s.p999, 999));
    EXPECT_EQ(s.min, lengths.front());
    EXPECT_EQ(s.max, lengths.back());
  }
}

TEST(CorpusStatistics, SharesCountDocumentsStrictlyAboveTheLimit) {
  const CorpusStatistics s = corpus_statistics({32768, 32769, 262144, 262145});
  constexpr double kTokens = 32768 + 32769 + 262144 + 262145;
  EXPECT_DOUBLE_EQ(s.share_above_32k, (kTokens - 32768) / kTokens);
  EXPECT_DOUBLE_EQ(s.share_above_256k, 262145 / kTokens);
}

TEST(CorpusStatistics, BucketsDoubleAndLeaveNoGap) {
  const CorpusStatistics s = corpus_statistics({0, 1, 8, 15, 16});
  ASSERT_EQ(s.histogram.size(), 6U);  // 0, 1, 2-3, 4-7, 8-15, 16-31
  const std::vector<std::int64_t> begins = {0, 1, 2, 4, 8, 16};
  const std::vector<std::int64_t> documents = {1, 1, 0, 0, 2, 1};
  const std::vector<std::int64_t> tokens = {0, 1, 0, 0, 23, 16};
  const double squares = 1 + 64 + 225 + 256;
  const std::vector<double> shares = {0, 1 / squares, 0, 0, 289 / squares, 256 / squares};
  for (std::size_t b = 0; b < begins.size(); ++b) {
    SCOPED_TRACE(b);
    EXPECT_EQ(s.histogram[b].begin, begins[b]);
    EXPECT_EQ(s.histogram[b].end, b + 1 < begins.size() ? begins[b + 1] : 32);
    EXPECT_EQ(s.histogram[b].documents, documents[b]);
    EXPECT_EQ(s.histogram[b].tokens, tokens[b]);
    EXPECT_DOUBLE_EQ(s.histogram[b].attention_share, shares[b]);
  }
}

TEST(CorpusStatistics, HandlesNothingAndNothingButZeros) {
  EXPECT_EQ(corpus_statistics({}).documents, 0);
  EXPECT_TRUE(corpus_statistics({}).histogram.empty());
  const CorpusStatistics s = corpus_statistics({0, 0});
  EXPECT_EQ(s.share_above_32k, 0);
  ASSERT_EQ(s.histogram.size(), 1U);
  EXPECT_EQ(s.histogram[0].attention_share, 0);
}

TEST(CorpusStatistics, SquaresOfTheLongestDocumentsDoNotOverflow) {
  const CorpusStatistics s = corpus_statistics({kMaxDocumentTokens, kMaxDocumentTokens, 1});
  EXPECT_DOUBLE_EQ(s.histogram.back().attention_share, 1.0);
}

}  // namespace
}  // namespace libra
