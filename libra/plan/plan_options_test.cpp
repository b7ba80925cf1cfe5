#include "libra/plan/plan_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "libra/base/error.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void(PlanOptions&)>& change, std::int32_t replicas = 2) {
  PlanOptions options;
  options.cp = 8;
  change(options);
  try {
    check_options(options, replicas);
    return "accepted";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(PlanOptions, DefaultsAreLegal) {
  EXPECT_EQ(error_of([](PlanOptions&) {}), "accepted");
}

struct BrokenRule {
  const char* name;
  std::function<void(PlanOptions&)> change;
  const char* message;  ///< part of it
};

class BrokenRules : public ::testing::TestWithParam<BrokenRule> {};

TEST_P(BrokenRules, AreNamedWithTheNearestLegalValue) {
  EXPECT_THAT(error_of(GetParam().change), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    PlanOptions, BrokenRules,
    ::testing::Values(
        BrokenRule{"NoHeads", [](PlanOptions& o) { o.shape.q_heads = 0; }, "q_heads is 0"},
        BrokenRule{"NegativeKvHeads", [](PlanOptions& o) { o.shape.kv_heads = -8; },
                   "kv_heads is -8"},
        BrokenRule{"KvHeadsDoNotDivide", [](PlanOptions& o) { o.shape.kv_heads = 6; },
                   "nearest legal value 4"},
        BrokenRule{"NoHeadDim", [](PlanOptions& o) { o.shape.head_dim = 0; }, "head_dim is 0"},
        BrokenRule{"NoValueDim", [](PlanOptions& o) { o.shape.value_dim = 0; }, "value_dim is 0"},
        BrokenRule{"HugeHeadDim", [](PlanOptions& o) { o.shape.head_dim = 1 << 30; }, "[1, 1024]"},
        BrokenRule{"HugeHeads", [](PlanOptions& o) { o.shape.q_heads = 1 << 30; }, "[1, 4096]"},
        BrokenRule{"NoCp", [](PlanOptions& o) { o.cp = 0; }, "CP is 0"},
        BrokenRule{"TpDoesNotDivideCp", [](PlanOptions& o) { o.tp = 3; },
                   "nearest legal value 2 or 4"},
        BrokenRule{"TpDoesNotDivideH", [](PlanOptions& o) { o.tp = 4; },
                   "head_shards H 2 (the default) is not a multiple of TP"},
        BrokenRule{"HDoesNotDivideHeads", [](PlanOptions& o) { o.head_shards = 3; },
                   "nearest legal value 2 or 4"},
        BrokenRule{"ShardsCutKvHeadsUnevenly",
                   [](PlanOptions& o) {
                     o.shape = {40, 8, 128, 128};  // g 5: shards of 10 and 5 are legal, of 4 not
                     o.head_shards = 10;
                     o.chunks = 1;
                   },
                   "nearest legal value 8 or 40"},
        BrokenRule{"NoShards", [](PlanOptions& o) { o.head_shards = 0; }, "H is 0"},
        BrokenRule{"NoChunks", [](PlanOptions& o) { o.chunks = 0; }, "M is 0"},
        BrokenRule{"MDoesNotDivideShard", [](PlanOptions& o) { o.chunks = 3; },
                   "nearest legal value 2 or 4"},
        BrokenRule{"DefaultsThatDoNotFitSaySo",
                   [](PlanOptions& o) {
                     o.shape = {2, 2, 8, 8};
                   },
                   "chunks M 2 (the default) does not cut a shard of 1 query heads, q_heads 2 / "
                   "head_shards H 2 (the default), into"},
        BrokenRule{"MoreChunksThanHeads", [](PlanOptions& o) { o.chunks = 64; },
                   "nearest legal value 16"},
        BrokenRule{"UlyssesNeedsHEqualToCp",
                   [](PlanOptions& o) { o.placer = PlacerKind::kUlysses; },
                   "nearest legal value 8"},
        BrokenRule{"NoBlock", [](PlanOptions& o) { o.block_tokens = 0; }, "block size B is 0"},
        BrokenRule{"HugeBlock", [](PlanOptions& o) { o.block_tokens = INT64_MAX; }, "at most"},
        BrokenRule{"NegativeTau", [](PlanOptions& o) { o.tau_ppm = -1; }, "tau"},
        BrokenRule{"HugeTau", [](PlanOptions& o) { o.tau_ppm = 100'000'001; }, "tau"},
        BrokenRule{"TooManyWorkers", [](PlanOptions& o) { o.cp = 65'536; }, "65536 workers"}),
    [](const auto& rule) { return std::string(rule.param.name); });

TEST(PlanOptions, APoolHasAtLeastOneReplica) {
  EXPECT_THAT(error_of([](PlanOptions&) {}, 0), HasSubstr("P is 0"));
}

TEST(PlanOptions, FewerKvHeadsThanShardsAreLegal) {
  EXPECT_EQ(error_of([](PlanOptions& o) {
              o.shape.kv_heads = 1;
              o.head_shards = 8;
              o.chunks = 4;
            }),
            "accepted");
}

TEST(PlanOptions, NamesReadBackAsWhatTheyName) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(parse_home(home_name(static_cast<HomeKind>(i))), static_cast<HomeKind>(i));
    EXPECT_EQ(parse_placer(placer_name(static_cast<PlacerKind>(i))), static_cast<PlacerKind>(i));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(parse_fetch(fetch_name(static_cast<Fetch>(i))), static_cast<Fetch>(i));
    EXPECT_EQ(parse_backward(backward_name(static_cast<BackwardMode>(i))),
              static_cast<BackwardMode>(i));
  }
}

TEST(PlanOptions, AnUnknownNameListsTheKnownOnes) {
  try {
    parse_placer("best");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'best'"));
    EXPECT_THAT(error.what(), HasSubstr("none, ulysses, paper, reserve"));
  }
}

TEST(PlanOptions, FaithfulIsThePapersSystem) {
  PlanOptions options;
  options.tau_ppm = 7;
  options.block_tokens = 8192;
  options.node_fetch = true;
  options.inter_node_weight = 1;
  options.search_us = 1;
  const PlanOptions paper = faithful(options);
  EXPECT_EQ(paper.placer, PlacerKind::kPaper);
  EXPECT_EQ(paper.fetch, Fetch::kWhole);
  EXPECT_EQ(paper.tau_ppm, 30'000);
  EXPECT_FALSE(paper.local_first);
  EXPECT_FALSE(paper.node_fetch);
  EXPECT_EQ(paper.inter_node_weight, 0);
  EXPECT_EQ(paper.search_us, 0);
  EXPECT_EQ(paper.chunks, 4);
  EXPECT_EQ(paper.block_tokens, 8192);
  options.shape = {6, 6, 64, 64};  // three heads a shard
  EXPECT_EQ(faithful(options).chunks, 3);
  options.head_shards = 0;
  EXPECT_EQ(faithful(options).chunks, options.chunks) << "check_options says what is wrong";
}

TEST(PlanOptions, OnlyThePaperFetchesWholeGroupsByDefault) {
  EXPECT_EQ(default_fetch(PlacerKind::kPaper), Fetch::kWhole);
  EXPECT_EQ(default_fetch(PlacerKind::kReserve), Fetch::kPrefix);
  EXPECT_EQ(default_fetch(PlacerKind::kNone), Fetch::kPrefix);
  EXPECT_EQ(default_fetch(PlacerKind::kUlysses), Fetch::kPrefix);
}

TEST(PlanOptions, TheLseGoesHomeIfAskedForOrForRefetch) {
  PlanOptions options;
  EXPECT_FALSE(options.lse_goes_home());
  options.backward = BackwardMode::kRefetch;
  EXPECT_TRUE(options.lse_goes_home());
  options.backward = BackwardMode::kKeep;
  options.return_lse = true;
  EXPECT_TRUE(options.lse_goes_home());
}

TEST(PlanOptions, LargestLegalChunksIsTheFirstLegalCountBelow) {
  const AttentionShape gqa{40, 8, 128, 128};  // g 5; shards of 10 heads: 1, 2 and 10 are legal
  EXPECT_EQ(largest_legal_chunks(gqa, 4, 1), 1);
  EXPECT_EQ(largest_legal_chunks(gqa, 4, 5), 2);
  EXPECT_EQ(largest_legal_chunks(gqa, 4, 9), 2);
  EXPECT_EQ(largest_legal_chunks(gqa, 4, std::numeric_limits<std::int32_t>::max()), 10);
}

}  // namespace
}  // namespace libra
