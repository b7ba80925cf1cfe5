#include "libra/runtime/whole_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace libra {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Entry square(std::int64_t row, std::int64_t tokens) {
  return {row, tokens, row, tokens, 0, 0, Mask::kTopLeftCausal};
}

// The rows of one part, sample after sample, and who found them to have stayed.
class OnePart {
 public:
  /// The next `tokens` rows hold these of a sample of `of` tokens.
  OnePart& with(TokenRange tokens, std::int64_t of, bool stays = true) {
    const auto sample = static_cast<std::int32_t>(layout_.samples.size());
    layout_.samples.push_back({0, 0, of, 0, 0});
    fragments_.push_back({sample, 0, tokens, row_});
    stayed_.push_back(stays);
    row_ += tokens.size();
    return *this;
  }
  OnePart& sample(std::int64_t tokens) { return with({0, tokens}, tokens); }
  OnePart& moved(std::int64_t tokens) { return with({0, tokens}, tokens, false); }
  OnePart& padding(std::int64_t rows) {
    row_ += rows;
    return *this;
  }

  WholeSamples found(const WholeLimits& limits = {10, 4}) const {
    return find_whole_samples(layout_, fragments_, stayed_, limits);
  }

 private:
  HomeLayout layout_;
  std::vector<Fragment> fragments_;
  std::vector<bool> stayed_;
  std::int64_t row_ = 0;
};

TEST(WholeSamples, NeighboursAreOneRange) {
  const WholeSamples whole = OnePart().sample(3).sample(1).sample(2).found();
  EXPECT_THAT(whole.entries, ElementsAre(square(0, 3), square(3, 1), square(4, 2)));
  EXPECT_THAT(whole.rows, ElementsAre(TokenRange{0, 6}));
  EXPECT_THAT(whole.contains, ElementsAre(true, true, true));
}

TEST(WholeSamples, NoneOfNone) {
  const WholeSamples whole = OnePart().found();
  EXPECT_THAT(whole.entries, IsEmpty());
  EXPECT_THAT(whole.rows, IsEmpty());
}

TEST(WholeSamples, WhatMovedSplitsARange) {
  const WholeSamples whole = OnePart().sample(4).moved(5).sample(2).sample(3).found();
  EXPECT_THAT(whole.entries, ElementsAre(square(0, 4), square(9, 2), square(11, 3)));
  EXPECT_THAT(whole.rows, ElementsAre(TokenRange{0, 4}, TokenRange{9, 14}));
  EXPECT_THAT(whole.contains, ElementsAre(true, false, true, true));
}

TEST(WholeSamples, FewRowsTogetherDoNotCount) {
  const WholeSamples whole = OnePart().sample(2).sample(1).moved(1).sample(4).moved(1).found();
  EXPECT_THAT(whole.rows, ElementsAre(TokenRange{4, 8}));
  EXPECT_THAT(whole.contains, ElementsAre(false, false, false, true, false));
}

TEST(WholeSamples, PaddingSplitsARangeToo) {
  const WholeSamples whole = OnePart().sample(4).padding(1).sample(3).padding(1).sample(1).found();
  EXPECT_THAT(whole.rows, ElementsAre(TokenRange{0, 4}));
}

TEST(WholeSamples, LongOnesDoNotCount) {
  const WholeSamples whole = OnePart().sample(10).sample(11).sample(9).found();
  EXPECT_THAT(whole.rows, ElementsAre(TokenRange{0, 10}, TokenRange{21, 30}));
}

TEST(WholeSamples, PartsOfASampleDoNotCount) {
  const WholeSamples whole = OnePart().with({5, 10}, 10).sample(5).with({0, 6}, 7).found();
  EXPECT_THAT(whole.rows, ElementsAre(TokenRange{5, 10}));
}

}  // namespace
}  // namespace libra
