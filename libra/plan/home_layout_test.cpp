#include "libra/plan/home_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<std::int64_t>;

// The tokens of a part one by one, from the definitions in HomeKind. Chunk c of n over `tokens`
// tokens holds those t with floor(c * tokens / n) <= t < floor((c + 1) * tokens / n).
Tokens chunk(std::int64_t begin, std::int64_t tokens, std::int64_t c, std::int64_t n) {
  Tokens held;
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (c * tokens / n <= t && t < (c + 1) * tokens / n) held.push_back(begin + t);
  }
  return held;
}

void append(Tokens& all, const Tokens& more) { all.insert(all.end(), more.begin(), more.end()); }

Tokens zigzag(std::int64_t begin, std::int64_t tokens, std::int64_t index, std::int64_t n) {
  Tokens held = chunk(begin, tokens, index, 2 * n);
  append(held, chunk(begin, tokens, 2 * n - 1 - index, 2 * n));
  return held;
}

Tokens explicit_tokens(const std::vector<TokenRange>& runs) {
  Tokens held;
  for (const TokenRange run : runs) {
    for (std::int64_t t = run.begin; t < run.end; ++t) held.push_back(t);
  }
  return held;
}

Tokens zigzag_documents(const PackedSequence& sequence, std::int64_t index, std::int64_t n) {
  Tokens held;
  std::int64_t begin = 0;
  for (const std::int64_t tokens : sequence.sample_tokens) {
    append(held, zigzag(begin, tokens, index, n));
    begin += tokens;
  }
  append(held, zigzag(begin, sequence.tokens - begin, index, n));
  return held;
}

Tokens expected_tokens(const PlanOptions& options, const PackedSequence& sequence,
                       std::int32_t replica, std::int64_t index) {
  const std::int64_t n = options.cp / options.tp;
  switch (options.home) {
    case HomeKind::kContiguous:
      return chunk(0, sequence.tokens, index, n);
    case HomeKind::kZigzagRow:
      return zigzag(0, sequence.tokens, index, n);
    case HomeKind::kZigzagDocument:
      return zigzag_documents(sequence, index, n);
    case HomeKind::kExplicit:
      return explicit_tokens(options.explicit_runs[at(replica)][at(index)]);
  }
  return {};
}

Tokens tokens_of(const TokenPart& part) { return explicit_tokens(part.runs); }

void expect_parts(const PlanOptions& options, const std::vector<PackedSequence>& sequences,
                  const HomeLayout& layout) {
  const std::int32_t n = options.cp / options.tp;
  ASSERT_EQ(layout.parts.size(), sequences.size() * at(n));
  ASSERT_EQ(layout.workers(), static_cast<std::int32_t>(sequences.size()) * options.cp);
  for (std::size_t p = 0; p < layout.parts.size(); ++p) {
    const TokenPart& part = layout.parts[p];
    const auto replica = static_cast<std::int32_t>(p) / n;
    EXPECT_EQ(part.replica, replica);
    EXPECT_EQ(part.rows, static_cast<std::int64_t>(tokens_of(part).size()));
    ASSERT_EQ(tokens_of(part), expected_tokens(options, sequences[at(replica)], replica,
                                               static_cast<std::int64_t>(p) % n));
    for (std::size_t run = 1; run < part.runs.size(); ++run)
      EXPECT_NE(part.runs[run - 1].end, part.runs[run].begin) << "neighbours are merged";
  }
}

void expect_each_token_once(const std::vector<PackedSequence>& sequences,
                            const HomeLayout& layout) {
  for (std::size_t replica = 0; replica < sequences.size(); ++replica) {
    std::vector<int> homes(at(sequences[replica].tokens), 0);
    for (const TokenPart& part : layout.parts) {
      if (at(part.replica) != replica) continue;
      for (const std::int64_t token : tokens_of(part)) ++homes[at(token)];
    }
    EXPECT_EQ(homes, std::vector<int>(homes.size(), 1));
  }
}

// Fragments walk each sample in token order, and name the row where the part really has the token.
void expect_fragments(const std::vector<PackedSequence>& sequences, const HomeLayout& layout) {
  std::vector<Tokens> rows;
  for (const TokenPart& part : layout.parts) rows.push_back(tokens_of(part));
  std::size_t sample = 0;
  for (std::size_t replica = 0; replica < sequences.size(); ++replica) {
    std::int64_t begin = 0;
    for (const std::int64_t tokens : sequences[replica].sample_tokens) {
      ASSERT_LT(sample, layout.samples.size());
      EXPECT_EQ(layout.samples[sample].begin, begin);
      EXPECT_EQ(layout.samples[sample].tokens, tokens);
      EXPECT_EQ(at(layout.samples[sample].replica), replica);
      std::int64_t next = 0;
      const Fragment* last = nullptr;
      for (const Fragment& fragment : layout.fragments_of(static_cast<std::int32_t>(sample))) {
        ASSERT_EQ(at(fragment.sample), sample);
        ASSERT_EQ(fragment.tokens.begin, next);
        ASSERT_GT(fragment.tokens.end, next);
        ASSERT_EQ(at(layout.parts[at(fragment.part)].replica), replica);
        for (std::int64_t t = next; t < fragment.tokens.end; ++t)
          ASSERT_EQ(rows[at(fragment.part)][at(fragment.row + t - next)], begin + t);
        const bool continues = last != nullptr && last->part == fragment.part &&
                               last->row + last->tokens.size() == fragment.row;
        EXPECT_FALSE(continues) << "fragments are maximal";
        next = fragment.tokens.end;
        last = &fragment;
      }
      ASSERT_EQ(next, tokens);
      begin += tokens;
      ++sample;
    }
  }
  EXPECT_EQ(sample, layout.samples.size());
}

TEST(HomeLayout, OfRandomPoolsIsWhatTheDefinitionsSayTokenByToken) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [options, sequences] = testing::random_problem(seed);
    const HomeLayout layout = make_home_layout(options, sequences);
    expect_parts(options, sequences, layout);
    expect_each_token_once(sequences, layout);
    expect_fragments(sequences, layout);
    if (HasFatalFailure()) return;
  }
}

TEST(HomeLayout, EveryTokenCountsWhenLengthsAreNoMultipleOf2Cp) {
  const std::vector<PackedSequence> sequences = {{2048 + 300, {7, 137, 2041, 89, 0, 1}},
                                                 {2041, {2041}}};
  for (const HomeKind home :
       {HomeKind::kContiguous, HomeKind::kZigzagRow, HomeKind::kZigzagDocument}) {
    for (const std::int32_t tp : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << home_name(home) << ", TP " << tp);
      PlanOptions options;
      options.home = home;
      options.tp = tp;
      options.cp = 4 * tp;
      const HomeLayout layout = make_home_layout(options, sequences);
      expect_parts(options, sequences, layout);
      expect_each_token_once(sequences, layout);
      expect_fragments(sequences, layout);
    }
  }
}

TEST(HomeLayout, OfTheHeaderExample) {
  PlanOptions options;
  options.cp = 2;
  const HomeLayout layout = make_home_layout(options, std::vector<PackedSequence>{{20, {5, 7, 6}}});
  EXPECT_THAT(layout.parts[0].runs, ElementsAre(TokenRange{0, 10}));
  EXPECT_THAT(layout.parts[1].runs, ElementsAre(TokenRange{10, 20}));
  EXPECT_THAT(layout.fragments, ElementsAre(Fragment{0, 0, {0, 5}, 0}, Fragment{1, 0, {0, 5}, 5},
                                            Fragment{1, 1, {5, 7}, 0}, Fragment{2, 1, {0, 6}, 2}));
}

TEST(HomeLayout, NeighbouringSamplesOfOneTokenStayApart) {
  PlanOptions options;
  const HomeLayout layout =
      make_home_layout(options, std::vector<PackedSequence>{{4, {1, 1, 0, 1}}});
  ASSERT_EQ(layout.samples.size(), 4U);
  EXPECT_EQ(layout.fragments.size(), 3U);
  EXPECT_TRUE(layout.fragments_of(2).empty());
}

using Runs = std::vector<std::vector<std::vector<TokenRange>>>;

std::string explicit_error(Runs runs) {
  PlanOptions options;
  options.cp = 2;
  options.home = HomeKind::kExplicit;
  options.explicit_runs = std::move(runs);
  try {
    make_home_layout(options, std::vector<PackedSequence>{{10, {10}}});
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(ExplicitRuns, MustHoldEveryTokenOnce) {
  EXPECT_EQ(explicit_error({{{{4, 10}}, {{0, 4}}}}), "accepted");
  EXPECT_EQ(explicit_error({{{{4, 10}, {3, 3}}, {{0, 4}}}}), "accepted");
  EXPECT_THAT(explicit_error({{{{4, 10}}, {{0, 3}}}}), HasSubstr("token 3 belongs to no part"));
  EXPECT_THAT(explicit_error({{{{4, 10}}, {{0, 5}}}}),
              HasSubstr("token 4 belongs to more than one part"));
  EXPECT_THAT(explicit_error({{{{4, 10}}, {{0, 4}, {0, 4}}}}), HasSubstr("more than one part"));
  EXPECT_THAT(explicit_error({{{{4, 11}}, {{0, 4}}}}), HasSubstr("cover 11 of its 10 tokens"));
  EXPECT_THAT(explicit_error({{{{4, 9}}, {{0, 4}}}}), HasSubstr("cover 9 of its 10 tokens"));
  EXPECT_THAT(explicit_error({{{{4, 10}}, {{-2, 4}}}}), HasSubstr("more than one part"));
  EXPECT_THAT(explicit_error({{{}, {}}}), HasSubstr("cover 0 of its 10 tokens"));
}

TEST(ExplicitRuns, MustBeGivenForEverySequenceAndPart) {
  EXPECT_THAT(explicit_error({}), HasSubstr("explicit runs for 0 sequences in a pool of 1"));
  EXPECT_THAT(explicit_error({{{{0, 10}}}}), HasSubstr("1 parts: CP / TP is 2"));
}

std::string sequence_error(const PackedSequence& sequence, const PlanOptions& options = {}) {
  try {
    make_home_layout(options, std::vector<PackedSequence>{sequence});
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(Sequences, ThatDoNotFitAreErrors) {
  EXPECT_THAT(sequence_error({-1, {}}), HasSubstr("has -1 tokens"));
  EXPECT_THAT(sequence_error({10, {4, -2}}), HasSubstr("a sample of -2 tokens"));
  EXPECT_THAT(sequence_error({10, {11}}), HasSubstr("longer than its 10 tokens"));
  EXPECT_THAT(sequence_error({10, {21}}), HasSubstr("longer than its 10 tokens"));
  EXPECT_THAT(sequence_error({10, {4, 4, 4}}), HasSubstr("longer than its 10 tokens"));
  EXPECT_THAT(sequence_error({10, {INT64_MAX, INT64_MAX}}), HasSubstr("longer than"));
  EXPECT_THAT(sequence_error({INT64_MAX, {}}), HasSubstr("it may have 0 to"));
  EXPECT_EQ(sequence_error({0, {}}), "accepted");
  EXPECT_EQ(sequence_error({0, {0, 0}}), "accepted");
}

TEST(Sequences, BeyondWhat64BitsCanCountAreErrors) {
  PlanOptions options;
  options.block_tokens = 1 << 20;
  options.shape.q_heads = 4096;
  options.shape.head_dim = 1024;
  EXPECT_THAT(sequence_error({1 << 30, {1 << 30}}, options), HasSubstr("query-key pairs"));
  EXPECT_THAT(sequence_error({1 << 20, {1 << 20}}, options), "accepted");
  options.cp = 32'768;
  EXPECT_THAT(sequence_error({1 << 21, {1 << 20}}, options), HasSubstr("bytes"));
  options.block_tokens = 1;
  EXPECT_THAT(sequence_error({1 << 30, {}}, options), HasSubstr("tiles"));
}

}  // namespace
}  // namespace libra
