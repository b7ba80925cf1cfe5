// Forward and backward through the whole distributed path, in fp64, against plain attention at
// 1e-10: home layouts x CP x P x H x M x GQA x keep/refetch x sample sets, legal combinations
// right, illegal ones refused.
//
// LIBRA_MATRIX_FRACTION=n runs every n-th combination, for builds that are many times slower.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/rng.h"
#include "libra/runtime/random_pools.h"
#include "tests/matrix_fraction.h"
#include "tests/pool_check.h"

namespace libra::testing {
namespace {

constexpr std::int64_t kTokens = 44;  // not a multiple of 2 CP for CP 4

struct Layout {
  const char* name;
  HomeKind home;
  std::int32_t tp;
};
constexpr Layout kLayouts[] = {{"contiguous", HomeKind::kContiguous, 1},
                               {"zigzag_row", HomeKind::kZigzagRow, 1},
                               {"zigzag_document", HomeKind::kZigzagDocument, 1},
                               {"head_range", HomeKind::kContiguous, 2}};

enum class Samples { kOneGiant, kAllTiny, kMixed, kZerosAndOnes, kTrailingPadding };
constexpr Samples kSampleSets[] = {Samples::kOneGiant, Samples::kAllTiny, Samples::kMixed,
                                   Samples::kZerosAndOnes, Samples::kTrailingPadding};

// Lengths of replica r; replicas differ, so that the pool is unbalanced.
std::vector<std::int64_t> sample_tokens(Samples set, std::int32_t replica) {
  switch (set) {
    case Samples::kOneGiant:
      return replica == 0 ? std::vector<std::int64_t>{kTokens}
                          : std::vector<std::int64_t>{11, 11, 22};
    case Samples::kAllTiny:
      return std::vector<std::int64_t>(22, 2);
    case Samples::kMixed:
      return replica % 2 == 0 ? std::vector<std::int64_t>{1, 30, 13}
                              : std::vector<std::int64_t>{7, 9, 2, 3, 5, 18};
    case Samples::kZerosAndOnes:
      return {0, 1, 0, 0, 25, 1, 1, 1, 0, 7, 0};
    case Samples::kTrailingPadding:
      return replica == 0 ? std::vector<std::int64_t>{17, 9} : std::vector<std::int64_t>{};
  }
  return {};
}

struct Case {
  Layout layout;
  std::int32_t cp, replicas;
  std::int32_t head_shards = 1, chunks = 1, kv_heads = 1;
  BackwardMode backward = BackwardMode::kKeep;
  Samples samples = Samples::kOneGiant;
};

// The rules of design.md, stated a second time.
bool legal(const Case& c) {
  const std::int32_t q_heads = 8;
  const std::int32_t group = q_heads / c.kv_heads;
  const auto fits = [group](std::int32_t heads) {
    return heads % group == 0 || group % heads == 0;
  };
  const std::int32_t shard = q_heads / c.head_shards;
  return c.cp % c.layout.tp == 0 && c.kv_heads % c.layout.tp == 0 &&
         c.head_shards % c.layout.tp == 0 && fits(shard) && shard % c.chunks == 0 &&
         fits(shard / c.chunks);
}

PlanOptions options_of(const Case& c, std::uint64_t seed) {
  PlanOptions options;
  options.shape = {8, c.kv_heads, 6, 4};
  options.storage = DType::kFp64;
  options.cp = c.cp;
  options.tp = c.layout.tp;
  options.home = c.layout.home;
  options.head_shards = c.head_shards;
  options.chunks = c.chunks;
  options.backward = c.backward;
  options.return_lse = true;
  // Placer, fetch, block size, local-first and node fetch are drawn: the matrix is large enough to
  // meet them all everywhere.
  Rng rng(seed, 1);
  options.block_tokens = std::vector<std::int64_t>{3, 8, 16, kTokens}[rng.below(4)];
  options.placer = std::vector<PlacerKind>{
      PlacerKind::kPaper, PlacerKind::kReserve, PlacerKind::kBalanced, PlacerKind::kNone,
      c.head_shards == c.cp ? PlacerKind::kUlysses : PlacerKind::kPaper}[rng.below(4)];
  options.fetch = rng.below(2) == 0 ? Fetch::kWhole : Fetch::kPrefix;
  options.local_first = rng.below(3) != 0;
  options.node_fetch = rng.below(2) == 0;
  options.gpus_per_node = std::vector<std::int32_t>{1, 2, 3}[rng.below(3)];
  return options;
}

std::vector<PackedSequence> sequences_of(const Case& c) {
  std::vector<PackedSequence> sequences;
  sequences.reserve(at(c.replicas));
  for (std::int32_t replica = 0; replica < c.replicas; ++replica) {
    sequences.push_back({kTokens, sample_tokens(c.samples, replica)});
  }
  return sequences;
}

// By the rule that is broken, with what would be right.
void expect_refused(const PlanOptions& options, const std::vector<PackedSequence>& sequences) {
  try {
    make_plan(options, sequences);
    ADD_FAILURE() << "an illegal combination was accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("nearest legal value"), std::string::npos)
        << error.what();
  }
}

void run_case(const Case& c, std::uint64_t seed) {
  const PlanOptions options = options_of(c, seed);
  if (!legal(c)) {
    expect_refused(options, sequences_of(c));
    return;
  }
  expect_exact(make_plan(options, sequences_of(c)), seed);
}

constexpr std::int32_t kHeadShards[] = {1, 2, 4, 8};
constexpr std::int32_t kChunks[] = {1, 2, 4};
constexpr std::int32_t kKvHeads[] = {8, 2, 1};
constexpr BackwardMode kModes[] = {BackwardMode::kKeep, BackwardMode::kRefetch};
constexpr std::size_t kCases = std::size(kHeadShards) * std::size(kChunks) * std::size(kKvHeads) *
                               std::size(kModes) * std::size(kSampleSets);

// The index-th case of a layout and pool, its index read as digits, the last of which runs fastest.
Case case_at(std::size_t index, const Layout& layout, std::int32_t cp, std::int32_t replicas) {
  const auto digit = [&index](const auto& values) {
    const auto value = values[index % std::size(values)];
    index /= std::size(values);
    return value;
  };
  Case c{layout, cp, replicas};
  c.samples = digit(kSampleSets);
  c.backward = digit(kModes);
  c.kv_heads = digit(kKvHeads);
  c.chunks = digit(kChunks);
  c.head_shards = digit(kHeadShards);
  return c;
}

std::string describe(const Case& c, std::uint64_t seed) {
  return fmt::format("H {} M {} kv {} {} samples {} seed {}", c.head_shards, c.chunks, c.kv_heads,
                     backward_name(c.backward), static_cast<int>(c.samples), seed);
}

class DistributedMatrix
    : public ::testing::TestWithParam<std::tuple<std::size_t, std::int32_t, std::int32_t>> {};

TEST_P(DistributedMatrix, EqualsPlainAttention) {
  const auto [layout, cp, replicas] = GetParam();
  const std::size_t stride = at(matrix_fraction());
  for (std::size_t index = 0; index < kCases; index += stride) {
    const Case c = case_at(index, kLayouts[layout], cp, replicas);
    const std::uint64_t seed = index * 1000 + layout * 100 + at(cp) * 10 + at(replicas);
    SCOPED_TRACE(describe(c, seed));
    ASSERT_NO_FATAL_FAILURE(run_case(c, seed));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DistributedMatrix,
                         ::testing::Combine(::testing::Range(std::size_t{0}, std::size(kLayouts)),
                                            ::testing::Values(1, 2, 4), ::testing::Values(1, 2, 4)),
                         [](const auto& test) {
                           return fmt::format("{}_cp{}_p{}", kLayouts[std::get<0>(test.param)].name,
                                              std::get<1>(test.param), std::get<2>(test.param));
                         });

// Pools on several nodes whose workers all compute for each other: keys go through relays.
class NodeFetchMatrix
    : public ::testing::TestWithParam<std::tuple<std::size_t, std::int32_t, std::int32_t>> {};

// Whether the plan has relays.
bool run_on_nodes(const Case& c, std::int32_t gpus_per_node, std::uint64_t seed) {
  SCOPED_TRACE(describe(c, seed));
  PlanOptions options = options_of(c, seed);
  options.node_fetch = true;
  options.gpus_per_node = gpus_per_node;
  Rng rng(seed, 2);
  const PoolPlan plan = scattered(make_plan(options, sequences_of(c)), rng);
  expect_exact(plan, seed);
  return has_relays(plan.exchange);
}

TEST_P(NodeFetchMatrix, EqualsPlainAttention) {
  const auto [layout, workers, gpus_per_node] = GetParam();
  const std::size_t stride = at(matrix_fraction());
  int relayed = 0;
  for (std::size_t index = 0; index < kCases; index += stride) {
    const Case c = case_at(index, kLayouts[layout], 2, workers / 2);
    if (c.head_shards > 2 || c.chunks == 2 || !legal(c)) continue;
    relayed += run_on_nodes(c, gpus_per_node, index * 100 + layout) ? 1 : 0;
    if (HasFailure()) return;
  }
  if (stride > 1) return;
  EXPECT_EQ(relayed > 0, workers > gpus_per_node);
}

INSTANTIATE_TEST_SUITE_P(All, NodeFetchMatrix,
                         ::testing::Combine(::testing::Range(std::size_t{0}, std::size(kLayouts)),
                                            ::testing::Values(4, 8), ::testing::Values(2, 4)),
                         [](const auto& test) {
                           return fmt::format("{}_w{}_node{}",
                                              kLayouts[std::get<0>(test.param)].name,
                                              std::get<1>(test.param), std::get<2>(test.param));
                         });

}  // namespace
}  // namespace libra::testing
