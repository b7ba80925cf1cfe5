// What a corpus looks like: quantiles, the weight of long documents, a histogram.
//
//   const CorpusStatistics s = corpus_statistics(corpus.lengths);
//   fmt::print("median {}, {:.0f}% of tokens above 32K\n", s.median, 100 * s.share_above_32k);
#pragma once

#include <cstdint>
#include <vector>

namespace libra {

/// Documents of [begin, end) tokens: {0, 1}, {1, 2}, {2, 4}, {4, 8} and so on.
struct LengthBucket {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  double attention_share = 0;  ///< of the corpus's sum of squared lengths, 0 to 1
};

struct CorpusStatistics {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t min = 0;
  std::int64_t median = 0;  ///< this and the percentiles: nearest rank, the lower of two
  std::int64_t p90 = 0;
  std::int64_t p99 = 0;
  std::int64_t p999 = 0;
  std::int64_t max = 0;
  double mean = 0;
  double share_above_32k = 0;           ///< of the tokens, in documents of more than 32,768 tokens
  double share_above_256k = 0;          ///< of the tokens, in documents of more than 262,144 tokens
  std::vector<LengthBucket> histogram;  ///< without gaps, from the shortest to the longest document
};

/// Requires lengths >= 0. All zeros and no histogram for no lengths; shares of nothing are 0. O(n).
CorpusStatistics corpus_statistics(const std::vector<std::int64_t>& lengths);

}  // namespace libra
