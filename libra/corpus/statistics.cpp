#include "libra/corpus/statistics.h"

#include <algorithm>
#include <array>
#include <bit>

#include "libra/base/check.h"

namespace libra {
namespace {

// Bucket 0 holds length 0, bucket b > 0 holds [2^(b-1), 2^b).
std::size_t bucket_of(std::int64_t length) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
}

std::int64_t bucket_begin(std::size_t bucket) {
  return bucket == 0 ? 0 : std::int64_t{1} << (bucket - 1);
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::vector<LengthBucket> histogram(const std::vector<std::int64_t>& lengths) {
  constexpr std::size_t kBuckets = 64;
  std::array<LengthBucket, kBuckets> buckets{};
  double squares = 0;
  for (const std::int64_t length : lengths) {
    LengthBucket& bucket = buckets.at(bucket_of(length));
    const double square = static_cast<double>(length) * static_cast<double>(length);
    ++bucket.documents;
    bucket.tokens += length;
    bucket.attention_share += square;
    squares += square;
  }
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  std::vector<LengthBucket> result;
  for (std::size_t b = bucket_of(*shortest); b <= bucket_of(*longest); ++b) {
    LengthBucket& bucket = result.emplace_back(buckets.at(b));
    bucket.begin = bucket_begin(b);
    bucket.end = bucket_begin(b + 1);
    bucket.attention_share = share(bucket.attention_share, squares);
  }
  return result;
}

double share_above(const std::vector<std::int64_t>& lengths, std::int64_t limit,
                   std::int64_t tokens) {
  std::int64_t above = 0;
  for (const std::int64_t length : lengths) above += length > limit ? length : 0;
  return share(static_cast<double>(above), static_cast<double>(tokens));
}

// Nearest rank: the smallest length that at least `permille` of the documents do not exceed.
// Selecting from the highest rank down, each search looks only below the last one.
struct Selector {
  std::vector<std::int64_t> lengths;
  std::size_t end = lengths.size();

  std::int64_t at_permille(std::size_t permille) {
    const std::size_t rank = std::max<std::size_t>(1, (lengths.size() * permille + 999) / 1000);
    const auto begin = lengths.begin();
    const auto nth = begin + static_cast<std::ptrdiff_t>(rank - 1);
    if (rank - 1 < end) std::nth_element(begin, nth, begin + static_cast<std::ptrdiff_t>(end));
    end = rank - 1;
    return *nth;
  }
};

}  // namespace

CorpusStatistics corpus_statistics(const std::vector<std::int64_t>& lengths) {
  CorpusStatistics result;
  if (lengths.empty()) return result;
  result.documents = static_cast<std::int64_t>(lengths.size());
  for (const std::int64_t length : lengths) {
    LIBRA_CHECK(length >= 0, "a document has {} tokens", length);
    result.tokens += length;
  }
  result.mean = static_cast<double>(result.tokens) / static_cast<double>(result.documents);
  Selector selector{lengths};
  result.max = selector.at_permille(1000);
  result.p999 = selector.at_permille(999);
  result.p99 = selector.at_permille(990);
  result.p90 = selector.at_permille(900);
  result.median = selector.at_permille(500);
  result.min = selector.at_permille(0);
  result.share_above_32k = share_above(lengths, 32 * 1024, result.tokens);
  result.share_above_256k = share_above(lengths, 256 * 1024, result.tokens);
  result.histogram = histogram(lengths);
  return result;
}

}  // namespace libra
