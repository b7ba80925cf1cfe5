#include "libra/corpus/wlb_packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace libra {
namespace {

using ::testing::ElementsAre;

PackedSequence sequence(std::vector<std::int64_t> samples, std::int64_t tokens = 8) {
  return {tokens, std::move(samples)};
}

std::vector<std::int64_t> samples_of(const std::vector<PackedSequence>& bins) {
  std::vector<std::int64_t> samples;
  for (const PackedSequence& bin : bins) {
    samples.insert(samples.end(), bin.sample_tokens.begin(), bin.sample_tokens.end());
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

// L0 = 1: work l^2 + l is 30, 12, 12, 6, 2 for 5, 3, 3, 2, 1.
TEST(WlbPacker, GivesTheLongestFirstToTheBinWithTheLeastWork) {
  WlbPacker packer({2, 8, 2.0, 1.0, false});
  const std::vector<PackedSequence> window = {sequence({5, 3}), sequence({3, 2, 1})};
  const std::vector<PackedSequence> bins = packer.pack(window);
  EXPECT_THAT(bins[0].sample_tokens, ElementsAre(5, 1));
  EXPECT_THAT(bins[1].sample_tokens, ElementsAre(3, 3, 2));
  EXPECT_EQ(bins[1].tokens, 8);
}

// Cap 8 tokens: bin 0 gets 6, bin 1 then 3, 2 and 2; the next 2 fits by work into bin 1, which has
// no room, so it goes to the shorter bin 0.
TEST(WlbPacker, PrefersTheShortestBinIfTheLightestHasNoRoom) {
  WlbPacker packer({2, 8, 1.0, 1.0, false});
  const std::vector<PackedSequence> window = {sequence({6, 2}), sequence({3, 2, 2})};
  const std::vector<PackedSequence> bins = packer.pack(window);
  EXPECT_THAT(bins[0].sample_tokens, ElementsAre(6, 2));
  EXPECT_THAT(bins[1].sample_tokens, ElementsAre(3, 2, 2));
}

TEST(WlbPacker, WithoutDelayKeepsEverySampleInItsWindow) {
  WlbPacker packer({2, 8, 1.0, 1.0, false});
  const std::vector<PackedSequence> window = {sequence({5, 3}), sequence({5, 3})};
  EXPECT_THAT(samples_of(packer.pack(window)), ElementsAre(3, 3, 5, 5));
  EXPECT_EQ(packer.waiting_tokens(), 0);
}

// 8 is work 72, more than the mean bin's (72 + 8 * 2) / 2: it waits until there are two of its
// length class.
TEST(WlbPacker, OutliersWaitUntilThereIsOneForEachBin) {
  WlbPacker packer({2, 8, 2.0, 1.0, true});
  const std::vector<PackedSequence> first = {sequence({8}), sequence({1, 1, 1, 1, 1, 1, 1, 1})};
  EXPECT_THAT(samples_of(packer.pack(first)), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(packer.waiting_tokens(), 8);
  const std::vector<PackedSequence> bins = packer.pack(first);
  EXPECT_EQ(bins[0].sample_tokens.front(), 8);
  EXPECT_EQ(bins[1].sample_tokens.front(), 8);
  EXPECT_EQ(packer.waiting_tokens(), 0);
}

TEST(WlbPacker, WhatFindsNoRoomComesInTheNextWindow) {
  WlbPacker packer({2, 4, 1.0, 1000.0, true});  // almost linear work: no outliers
  const std::vector<PackedSequence> window = {sequence({3}, 4), sequence({3, 3}, 4)};
  EXPECT_THAT(samples_of(packer.pack(window)), ElementsAre(3, 3));
  EXPECT_EQ(packer.waiting_tokens(), 3);
  const std::vector<PackedSequence> none = {sequence({}, 4), sequence({}, 4)};
  EXPECT_THAT(samples_of(packer.pack(none)), ElementsAre(3));
}

}  // namespace
}  // namespace libra
