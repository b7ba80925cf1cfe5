#include "libra/plan/read_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/pool_plan.h"

namespace libra {
namespace {

using ::testing::HasSubstr;

PlanOptions zigzag(std::int32_t cp) {
  PlanOptions options;
  options.cp = cp;
  options.home = HomeKind::kZigzagDocument;
  options.head_shards = 1;
  options.chunks = 1;
  return options;
}

std::string error_of(const PlanOptions& options, std::vector<PackedSequence> sequences,
                     const std::vector<std::int64_t>& costs = {},
                     std::vector<std::int32_t> destination = {}) {
  try {
    rebuild_plan(options, std::move(sequences), costs, std::move(destination));
    return "accepted";
  } catch (const PlanError& error) {
    return error.what();
  }
}

// 8 bytes a sample would ask for 131,072 fragments each.
TEST(ReadLimits, FragmentsAreCountedBeforeTheyAreMade) {
  const std::vector<std::int64_t> samples(1000, std::int64_t{1} << 17);
  EXPECT_THAT(error_of(zigzag(65'536), {{std::int64_t{1} << 27, samples}}),
              HasSubstr("1.31e+08 fragments of samples: plans of up to 16777216 are read"));
}

TEST(ReadLimits, HomesAtTheLimitAreRead) {
  PlanOptions options = zigzag(4096);
  const std::vector<PackedSequence> at_limit{
      {1 << 20, std::vector<std::int64_t>(at(kMaxReadItems / 8193 - 2), 1)}};
  EXPECT_NO_THROW(require_readable_homes(options, at_limit));
  const std::vector<PackedSequence> beyond{
      {1 << 20, std::vector<std::int64_t>(at(kMaxReadItems / 8193 + 1), 1)}};
  EXPECT_THROW(require_readable_homes(options, beyond), PlanError);
}

// A few numbers would ask for tens of millions of blocks.
TEST(ReadLimits, SmallTilesOfHugeSequencesAreCountedBeforeTheyAreCut) {
  PlanOptions options = zigzag(1);
  options.shape = {1, 1, 1, 1};
  options.home = HomeKind::kContiguous;
  options.block_tokens = std::int64_t{1} << 30;
  options.max_tile_pairs = 1;
  const PackedSequence huge{std::int64_t{1} << 27, {std::int64_t{1} << 27}};
  EXPECT_THAT(error_of(options, std::vector<PackedSequence>(64, huge)),
              HasSubstr("6.71e+07 fragments of samples"));
}

TEST(ReadLimits, PiecesCountInEveryHeadShard) {
  PlanOptions options;
  options.head_shards = 4096;
  Tiling tiling;
  tiling.pieces.resize(4096);
  EXPECT_NO_THROW(require_readable_tiles(options, tiling));
  tiling.pieces.emplace_back();
  EXPECT_THROW(require_readable_tiles(options, tiling), PlanError);
}

// Every worker fetches the one sample, which has two fragments a worker: 2 W^2.
TEST(ReadLimits, FetchesThatGrowWithTheSquareOfTheWorkersAreCountedBeforeTheyAreMade) {
  constexpr std::int32_t kWorkers = 4096;
  const PlanOptions options = zigzag(kWorkers);
  const std::vector<PackedSequence> sequences{{kWorkers * 2, {kWorkers * 2}}};
  std::vector<std::int32_t> destination(kWorkers);
  for (std::int32_t tile = 0; tile < kWorkers; ++tile) destination[at(tile)] = tile;
  EXPECT_THAT(error_of(options, sequences, std::vector<std::int64_t>(kWorkers, 1), destination),
              HasSubstr("3.36e+07 fragments of fetched keys"));
  std::fill(destination.begin(), destination.end(), 0);
  EXPECT_EQ(error_of(options, sequences, std::vector<std::int64_t>(kWorkers, 1), destination),
            "accepted");
}

}  // namespace
}  // namespace libra
