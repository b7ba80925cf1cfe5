#include "libra/attention/cudnn/gradient_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "libra/base/index.h"
#include "libra/base/rng.h"

namespace libra::cudnn {
namespace {

// The packed rows that are added to each (row, head), in order.
using Sums = std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::int64_t>>;

Sums expected_sums(const std::vector<Entry>& pieces, Side side, const Packing& packing) {
  Sums sums;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const PieceRows run = rows_of(pieces[i], side);
    for (std::int64_t row = 0; row < run.rows; ++row) {
      sums[{run.row + row, run.head}].push_back(packing.rows[i] + row);
    }
  }
  return sums;
}

// As the kernel goes about it.
Sums planned_sums(const GradientPlan& plan) {
  Sums sums;
  std::size_t segment_idx = 0;
  for (std::int64_t work = 0; work < plan.rows; ++work) {
    while (segment_idx + 1 < plan.segments.size() &&
           plan.segments[segment_idx + 1].work_row <= work) {
      ++segment_idx;
    }
    const Segment& segment = plan.segments[segment_idx];
    const std::int64_t offset = work - segment.work_row;
    std::vector<std::int64_t>& rows = sums[{segment.row + offset, segment.head}];
    EXPECT_TRUE(rows.empty()) << "a row is visited twice";
    for (std::int32_t s = 0; s < segment.sources; ++s) {
      rows.push_back(plan.sources[at(segment.first_source + s)] + offset);
    }
  }
  return sums;
}

TEST(GradientPlan, AddsEveryShareOnceInTheOrderOfThePieces) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<Entry> pieces;
    const std::uint64_t count = 1 + rng.below(12);
    for (std::uint64_t i = 0; i < count; ++i) {
      pieces.push_back(
          {static_cast<std::int64_t>(rng.below(30)), static_cast<std::int64_t>(1 + rng.below(20)),
           static_cast<std::int64_t>(rng.below(30)), static_cast<std::int64_t>(1 + rng.below(20)),
           static_cast<std::int32_t>(4 * rng.below(3)), static_cast<std::int32_t>(rng.below(2)),
           Mask::kFull});
    }
    for (const Side side : {Side::kQueries, Side::kKeys}) {
      const Packing packing = pack_in_order(pieces, side);
      EXPECT_EQ(planned_sums(plan_gradients(pieces, side, packing)),
                expected_sums(pieces, side, packing));
    }
  }
}

TEST(Packing, InOrderLeavesNoGaps) {
  const std::vector<Entry> pieces = {{9, 4, 0, 7, 0, 0}, {2, 3, 5, 1, 0, 0}};
  const Packing queries = pack_in_order(pieces, Side::kQueries);
  EXPECT_EQ(queries.rows, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(queries.total, 7);
  EXPECT_FALSE(queries.origin.has_value());
  EXPECT_EQ(pack_in_order(pieces, Side::kKeys).rows, (std::vector<std::int64_t>{0, 7}));
}

TEST(Packing, InPlaceCountsFromTheFirstRow) {
  const auto packing = pack_in_place({{9, 4, 0, 7, 2, 0}, {2, 3, 5, 1, 2, 0}}, Side::kQueries, 11);
  ASSERT_TRUE(packing.has_value());
  EXPECT_EQ(packing->rows, (std::vector<std::int64_t>{7, 0}));
  EXPECT_EQ(packing->total, 11);
  EXPECT_EQ(packing->origin->row, 2);
  EXPECT_EQ(packing->origin->head, 2);
}

TEST(Packing, InPlaceWantsDistinctRowsOfOneHeadThatLieTogether) {
  EXPECT_FALSE(
      pack_in_place({{9, 4, 0, 7, 0, 0}, {2, 3, 5, 1, 0, 0}}, Side::kQueries, 10).has_value());
  EXPECT_FALSE(
      pack_in_place({{4, 4, 0, 7, 0, 0}, {2, 3, 5, 1, 0, 0}}, Side::kQueries, 10).has_value());
  EXPECT_FALSE(
      pack_in_place({{5, 4, 0, 7, 0, 0}, {2, 3, 5, 1, 4, 0}}, Side::kQueries, 10).has_value());
}

}  // namespace
}  // namespace libra::cudnn
