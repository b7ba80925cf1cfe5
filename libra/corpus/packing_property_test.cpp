// Random corpora against slow oracles and against what every packing must keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "libra/base/rng.h"
#include "libra/corpus/packing.h"

namespace libra {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::uint64_t kSeeds = 400;

struct Case {
  Lengths lengths;
  PackingOptions options;
};

// Small budgets and many zeros, ones and multiples of the budget, where mistakes live.
Case random_case(Packing packing, std::uint64_t seed) {
  Rng rng(seed);
  const auto below = [&rng](std::int64_t bound) {
    return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(bound)));
  };
  Case result;
  PackingOptions& options = result.options;
  options.packing = packing;
  options.tokens = 1 + below(60);
  options.oversize =
      std::vector{Oversize::kTruncate, Oversize::kSplit, Oversize::kDrop}[rng.below(3)];
  options.keep_empty = below(3) != 0;
  options.open_sequences = 1 + below(6);
  options.group_documents = below(30);
  result.lengths.resize(static_cast<std::size_t>(below(150)));
  for (std::int64_t& length : result.lengths) {
    const std::int64_t kind = below(8);
    length = kind == 0   ? 0
             : kind == 1 ? 1
             : kind == 2 ? options.tokens * below(4)
             : kind == 3 ? below(4 * options.tokens)
                         : below(options.tokens + 1);
  }
  return result;
}

struct Fragment {
  SampleOrigin origin;
  std::int64_t tokens = 0;
};

// What the oversize policy makes of the documents, in file order. Concat cuts for itself.
std::vector<Fragment> fragments_of(const Case& c) {
  std::vector<Fragment> result;
  for (std::size_t d = 0; d < c.lengths.size(); ++d) {
    const auto document = static_cast<std::int64_t>(d);
    const std::int64_t budget = c.options.tokens;
    std::int64_t left = c.lengths[d];
    if (left == 0 && !c.options.keep_empty) continue;
    const bool too_long = left > budget && c.options.packing != Packing::kConcat;
    if (too_long && c.options.oversize == Oversize::kDrop) continue;
    if (too_long && c.options.oversize == Oversize::kTruncate) left = budget;
    std::int64_t first = 0;
    while (too_long && left > budget) {
      result.push_back({{document, first}, budget});
      first += budget;
      left -= budget;
    }
    result.push_back({{document, first}, left});
  }
  return result;
}

std::int64_t used(const Packed& packed) {
  const Lengths& samples = packed.sequence.sample_tokens;
  return std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
}

void place(Packed& packed, const Fragment& fragment) {
  packed.sequence.sample_tokens.push_back(fragment.tokens);
  packed.origins.push_back(fragment.origin);
}

std::vector<Packed> first_fit_oracle(const Case& c) {
  std::vector<Packed> open;
  std::vector<Packed> done;
  const auto emit = [&](std::size_t i) {
    done.push_back(open[i]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (const Fragment& fragment : fragments_of(c)) {
    const bool fills = fragment.tokens == c.options.tokens;
    std::size_t bin = 0;
    while (bin < open.size() && used(open[bin]) + fragment.tokens > c.options.tokens) ++bin;
    if (bin == open.size() && !fills &&
        static_cast<std::int64_t>(open.size()) == c.options.open_sequences) {
      std::size_t fullest = 0;
      for (std::size_t i = 1; i < open.size(); ++i) {
        if (used(open[i]) > used(open[fullest])) fullest = i;
      }
      emit(fullest);
      --bin;
    }
    if (bin == open.size()) open.push_back({{c.options.tokens, {}}, {}});
    place(open[bin], fragment);
    if (used(open[bin]) == c.options.tokens) emit(bin);
  }
  done.insert(done.end(), open.begin(), open.end());
  return done;
}

std::vector<Packed> best_fit_group_oracle(std::vector<Fragment> group, std::int64_t budget) {
  const std::vector<Fragment> arrived = group;
  std::stable_sort(group.begin(), group.end(),
                   [](const Fragment& a, const Fragment& b) { return a.tokens > b.tokens; });
  std::vector<Packed> bins;
  for (const Fragment& fragment : group) {
    Packed* best = nullptr;
    for (Packed& bin : bins) {
      const bool fits = used(bin) + fragment.tokens <= budget;
      if (fits && (best == nullptr || used(bin) > used(*best))) best = &bin;
    }
    if (best == nullptr) best = &bins.emplace_back(Packed{{budget, {}}, {}});
    place(*best, fragment);
  }
  std::vector<Packed> ordered;
  for (const Fragment& fragment : arrived) {
    for (const Packed& bin : bins) {
      if (bin.origins.front() == fragment.origin) ordered.push_back(bin);
    }
  }
  return ordered;
}

std::vector<Packed> best_fit_oracle(const Case& c) {
  const std::vector<Fragment> all = fragments_of(c);
  const std::size_t group_size = c.options.group_documents == 0
                                     ? all.size()
                                     : static_cast<std::size_t>(c.options.group_documents);
  std::vector<Packed> result;
  for (std::size_t begin = 0; begin < all.size(); begin += group_size) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        all.begin() + static_cast<std::ptrdiff_t>(std::min(begin + group_size, all.size()));
    for (Packed& bin : best_fit_group_oracle({first, last}, c.options.tokens)) {
      result.push_back(std::move(bin));
    }
  }
  return result;
}

// Token by token: the position in the stream says which sequence a token is in.
std::vector<Packed> concat_oracle(const Case& c) {
  std::vector<Packed> result;
  std::int64_t position = 0;
  for (const Fragment& document : fragments_of(c)) {
    for (std::int64_t token = 0; token < std::max<std::int64_t>(document.tokens, 1); ++token) {
      const bool boundary = document.tokens > 0 && position % c.options.tokens == 0;
      if (boundary || result.empty()) {
        if (result.empty() || position > 0) result.push_back({{c.options.tokens, {}}, {}});
      }
      if (token == 0 || boundary) place(result.back(), {{document.origin.document, token}, 0});
      if (document.tokens == 0) continue;
      ++result.back().sequence.sample_tokens.back();
      ++position;
    }
  }
  return result;
}

class PackingProperty : public testing::TestWithParam<Packing> {};

TEST_P(PackingProperty, EqualsTheSlowOracle) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(GetParam(), seed);
    const std::vector<Packed> wanted = GetParam() == Packing::kFirstFit ? first_fit_oracle(c)
                                       : GetParam() == Packing::kConcat ? concat_oracle(c)
                                                                        : best_fit_oracle(c);
    ASSERT_TRUE(pack(c.lengths, c.options).sequences == wanted);
  }
}

// document -> (first token, tokens) of its samples
using Coverage = std::multimap<std::int64_t, std::pair<std::int64_t, std::int64_t>>;

Coverage coverage_of(const std::vector<Packed>& sequences) {
  Coverage coverage;
  for (const Packed& packed : sequences) {
    for (std::size_t s = 0; s < packed.origins.size(); ++s) {
      coverage.emplace(packed.origins[s].document,
                       std::pair{packed.origins[s].first_token, packed.sequence.sample_tokens[s]});
    }
  }
  return coverage;
}

TEST_P(PackingProperty, KeepsEveryTokenExactlyOnce) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(GetParam(), seed);
    const Coverage coverage = coverage_of(pack(c.lengths, c.options).sequences);
    const bool cuts = GetParam() != Packing::kConcat;
    for (std::size_t d = 0; d < c.lengths.size(); ++d) {
      const bool too_long = cuts && c.lengths[d] > c.options.tokens;
      std::int64_t kept = c.lengths[d];
      if (too_long && c.options.oversize == Oversize::kDrop) kept = 0;
      if (too_long && c.options.oversize == Oversize::kTruncate) kept = c.options.tokens;
      const auto [begin, end] = coverage.equal_range(static_cast<std::int64_t>(d));
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      for (auto at = begin; at != end; ++at) ranges.push_back(at->second);
      std::sort(ranges.begin(), ranges.end());
      std::int64_t next = 0;
      for (const auto& [first, tokens] : ranges) {
        ASSERT_EQ(first, next);
        ASSERT_TRUE(tokens > 0 || c.lengths[d] == 0);
        next += tokens;
      }
      ASSERT_EQ(next, kept) << "document " << d;
      if (c.lengths[d] == 0) {
        ASSERT_EQ(ranges.size(), c.options.keep_empty ? 1U : 0U);
      }
    }
  }
}

TEST_P(PackingProperty, RespectsTheBudgetAndReportsWhatItDid) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(GetParam(), seed);
    const PackedCorpus packed = pack(c.lengths, c.options);
    std::int64_t samples = 0;
    std::int64_t tokens = 0;
    for (const Packed& sequence : packed.sequences) {
      ASSERT_EQ(sequence.sequence.tokens, c.options.tokens);
      ASSERT_EQ(sequence.origins.size(), sequence.sequence.sample_tokens.size());
      ASSERT_FALSE(sequence.origins.empty());
      ASSERT_LE(used(sequence), c.options.tokens);
      samples += static_cast<std::int64_t>(sequence.origins.size());
      tokens += used(sequence);
    }
    const PackingReport& report = packed.report;
    const auto sequences = static_cast<std::int64_t>(packed.sequences.size());
    EXPECT_EQ(report.documents, static_cast<std::int64_t>(c.lengths.size()));
    EXPECT_EQ(report.tokens, std::accumulate(c.lengths.begin(), c.lengths.end(), std::int64_t{0}));
    EXPECT_EQ(report.tokens, tokens + report.truncated_tokens + report.dropped_tokens);
    EXPECT_EQ(report.sequences, sequences);
    EXPECT_EQ(report.samples, samples);
    EXPECT_EQ(report.padding_tokens, sequences * c.options.tokens - tokens);
    EXPECT_EQ(report.empty_documents, std::count(c.lengths.begin(), c.lengths.end(), 0));
    EXPECT_EQ(report.oversize_documents,
              report.truncated_documents + report.split_documents + report.dropped_documents);
  }
}

TEST_P(PackingProperty, AStreamTakenAsItComesEqualsPackingAllAtOnce) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = random_case(GetParam(), seed);
    DocumentPacker packer(c.options);
    for (std::size_t d = 0; d < c.lengths.size(); ++d) {
      packer.add(static_cast<std::int64_t>(d), c.lengths[d]);
    }
    packer.finish();
    std::vector<Packed> sequences;
    while (std::optional<Packed> next = packer.take()) sequences.push_back(*next);
    const PackedCorpus packed = pack(c.lengths, c.options);
    ASSERT_TRUE(sequences == packed.sequences);
    ASSERT_EQ(packer.report(), packed.report);
  }
}

INSTANTIATE_TEST_SUITE_P(Packings, PackingProperty,
                         testing::Values(Packing::kFirstFit, Packing::kBestFitDecreasing,
                                         Packing::kConcat),
                         [](const auto& test) {
                           return test.param == Packing::kFirstFit ? "FirstFit"
                                  : test.param == Packing::kConcat ? "Concat"
                                                                   : "BestFitDecreasing";
                         });

}  // namespace
}  // namespace libra
