#include "libra/corpus/wlb_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/rng.h"

namespace libra {
namespace {

using Sample = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // document, first, tokens

std::multiset<Sample> samples_of(const Window& window) {
  std::multiset<Sample> samples;
  for (const Packed& packed : window.sequences) {
    for (std::size_t i = 0; i < packed.origins.size(); ++i) {
      samples.emplace(packed.origins[i].document, packed.origins[i].first_token,
                      packed.sequence.sample_tokens[i]);
    }
  }
  return samples;
}

// Lengths of many short documents and some that are more work than all of them.
Corpus skewed_corpus(std::uint64_t seed) {
  Rng rng(seed, 0);
  Corpus corpus{"skewed", {}};
  for (int i = 0; i < 3000; ++i) {
    const auto most = rng.below(10) == 0 ? std::uint64_t{300} : std::uint64_t{20};
    corpus.lengths.push_back(static_cast<std::int64_t>(rng.below(most)));
  }
  return corpus;
}

WindowOptions window_options() {
  WindowOptions options;
  options.sequences = 6;
  options.packing.tokens = 128;
  options.packing.oversize = Oversize::kSplit;
  options.seed = 3;
  return options;
}

class WlbWindowsOf : public ::testing::TestWithParam<bool> {};

TEST_P(WlbWindowsOf, GiveEverySampleOnceNowOrLater) {
  const bool delay = GetParam();
  const Corpus corpus = skewed_corpus(11);
  WindowStream windows(corpus, window_options());
  WlbWindows repacking({6, 128, 1.25, 40.0, delay});
  std::multiset<Sample> given;
  std::multiset<Sample> come;
  bool waited = false;
  for (int step = 0; step < 20; ++step) {
    const Window window = windows.next();
    given.merge(samples_of(window));
    const Window repacked = repacking.repack(window);
    EXPECT_EQ(repacked.sequences.size(), 6);
    EXPECT_EQ(repacked.epoch, window.epoch);
    for (const Sample& sample : samples_of(repacked)) {
      ASSERT_EQ(given.count(sample), 1) << "document " << std::get<0>(sample);
      given.erase(sample);
    }
    waited = waited || repacking.waiting_tokens() > 0;
    std::int64_t rest = 0;
    for (const auto& [document, first, tokens] : given) rest += tokens;
    EXPECT_EQ(rest, repacking.waiting_tokens());
  }
  EXPECT_EQ(waited, delay);
}

INSTANTIATE_TEST_SUITE_P(Delay, WlbWindowsOf, ::testing::Bool());

TEST(WlbWindows, TakeTheFirstOfTwoSamplesOfOneLengthFirst) {
  WlbWindows repacking({2, 8, 2.0, 1.0, true});
  const auto window = [](std::int64_t document) {
    return Window{{{{8, {8}}, {{document, 0}}}, {{8, {1}}, {{document + 1, 0}}}}, 0};
  };
  const Window first = repacking.repack(window(10));  // 8 is more than half the work: it waits
  EXPECT_EQ(samples_of(first), (std::multiset<Sample>{{11, 0, 1}}));
  const Window second = repacking.repack(window(20));
  EXPECT_EQ(second.sequences[0].origins[0], (SampleOrigin{10, 0}));
  EXPECT_EQ(second.sequences[1].origins[0], (SampleOrigin{20, 0}));
}

TEST(WlbWindows, RefuseOptionsThatNoPackerCanWorkWith) {
  for (const WlbOptions& wrong : {WlbOptions{0, 8, 1.25, 1}, WlbOptions{2, 0, 1.25, 1},
                                  WlbOptions{2, 8, 0.5, 1}, WlbOptions{2, 8, 1.25, 0}}) {
    EXPECT_THROW(WlbWindows{wrong}, ConfigError);
  }
}

}  // namespace
}  // namespace libra
