#include "libra/corpus/window.h"

#include <gmock/gmock.h>

#include <map>

#include "libra/base/rng.h"
#include "libra/corpus/test_files.h"

namespace libra {
namespace {

using testing::HasSubstr;

WindowOptions windows_of(std::int64_t sequences, std::int64_t tokens) {
  WindowOptions options;
  options.sequences = sequences;
  options.packing.tokens = tokens;
  options.seed = 17;
  return options;
}

Corpus random_corpus(std::uint64_t seed, std::int64_t documents, std::int64_t longest) {
  Rng rng(seed);
  Corpus corpus{"random", {}};
  for (std::int64_t d = 0; d < documents; ++d) {
    corpus.lengths.push_back(
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(longest + 1))));
  }
  return corpus;
}

std::vector<Packed> first_sequences(WindowStream& stream, std::size_t count) {
  std::vector<Packed> sequences;
  while (sequences.size() < count) {
    for (Packed& packed : stream.next().sequences) sequences.push_back(std::move(packed));
  }
  sequences.resize(count);
  return sequences;
}

std::vector<WindowOptions> options_of_every_packing(std::int64_t sequences, std::int64_t tokens) {
  std::vector<WindowOptions> result;
  for (const Packing packing :
       {Packing::kFirstFit, Packing::kBestFitDecreasing, Packing::kConcat}) {
    WindowOptions& options = result.emplace_back(windows_of(sequences, tokens));
    options.packing.packing = packing;
    options.packing.group_documents = 64;
  }
  return result;
}

// The lengths that the samples of each document add up to, in all windows of one epoch. Requires
// windows of one sequence, which belong to one epoch.
std::map<std::int64_t, std::int64_t> tokens_in_epoch(const std::vector<Window>& windows,
                                                     std::int64_t epoch) {
  std::map<std::int64_t, std::int64_t> tokens;
  for (const Window& window : windows) {
    if (window.epoch != epoch) continue;
    const Packed& packed = window.sequences.front();
    for (std::size_t s = 0; s < packed.origins.size(); ++s) {
      tokens[packed.origins[s].document] += packed.sequence.sample_tokens[s];
    }
  }
  return tokens;
}

TEST(WindowStream, EveryEpochReadsEachDocumentOnce) {
  for (const WindowOptions& options : options_of_every_packing(1, 60)) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(seed);
      const Corpus corpus = random_corpus(seed, 203, 50);
      std::map<std::int64_t, std::int64_t> wanted;
      for (std::size_t d = 0; d < corpus.lengths.size(); ++d) {
        wanted[static_cast<std::int64_t>(d)] = corpus.lengths[d];
      }
      WindowStream stream(corpus, options);
      std::vector<Window> windows;
      while (windows.empty() || windows.back().epoch < 3) windows.push_back(stream.next());
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        ASSERT_EQ(tokens_in_epoch(windows, epoch), wanted);
      }
    }
  }
}

TEST(WindowStream, TheSizeOfWindowsDoesNotChangeTheSequences) {
  for (WindowOptions& options : options_of_every_packing(1, 60)) {
    const Corpus corpus = random_corpus(3, 203, 50);
    WindowStream one_by_one(corpus, options);
    const std::vector<Packed> wanted = first_sequences(one_by_one, 700);
    options.sequences = 7;
    WindowStream by_seven(corpus, options);
    for (std::size_t step = 0; step < 100; ++step) {
      const Window window = by_seven.next();
      ASSERT_EQ(window.sequences.size(), 7U);
      for (std::size_t i = 0; i < 7; ++i) ASSERT_TRUE(window.sequences[i] == wanted[7 * step + i]);
    }
  }
}

// In file order the stream is the eager packing, epoch after epoch.
TEST(WindowStream, LazyWindowsEqualEagerPacking) {
  for (WindowOptions& options : options_of_every_packing(1, 55)) {
    options.order = ReadOrder::kFileOrder;
    options.packing.open_sequences = 3;
    for (std::uint64_t seed = 1; seed < 50; ++seed) {
      SCOPED_TRACE(seed);
      const Corpus corpus = random_corpus(seed, 2 + static_cast<std::int64_t>(seed * 7), 50);
      options.sequences = 1 + static_cast<std::int64_t>(seed % 9);
      WindowStream stream(corpus, options);
      const std::vector<Packed> epoch = pack(corpus.lengths, options.packing).sequences;
      std::vector<Packed> wanted = epoch;
      wanted.insert(wanted.end(), epoch.begin(), epoch.end());
      ASSERT_TRUE(first_sequences(stream, wanted.size()) == wanted);
    }
  }
}

TEST(WindowStream, TheFirstWindowReadsOnlyWhatItNeeds) {
  const Corpus corpus{"ones", std::vector<std::int64_t>(100'000, 1)};
  for (const Packing packing : {Packing::kFirstFit, Packing::kConcat}) {
    WindowOptions options = windows_of(4, 10);
    options.packing.packing = packing;
    WindowStream stream(corpus, options);
    stream.next();
    EXPECT_LE(stream.report().documents, 41);
  }
}

TEST(WindowStream, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const Corpus corpus = random_corpus(1, 100, 30);
  WindowOptions options = windows_of(4, 60);
  WindowStream a(corpus, options);
  WindowStream b(corpus, options);
  options.seed = 18;
  WindowStream c(corpus, options);
  const std::vector<Packed> sequences = first_sequences(a, 200);
  EXPECT_TRUE(first_sequences(b, 200) == sequences);
  EXPECT_TRUE(first_sequences(c, 200) != sequences);
}

TEST(WindowStream, ReadOrderSaysWhichEpochsAreShuffled) {
  const Corpus corpus = random_corpus(2, 100, 30);
  WindowOptions options = windows_of(1, 60);
  const std::vector<Packed> in_file_order = pack(corpus.lengths, options.packing).sequences;
  const std::size_t count = in_file_order.size();
  options.order = ReadOrder::kFileOrderOnce;
  WindowStream once(corpus, options);
  EXPECT_TRUE(first_sequences(once, count) == in_file_order);
  EXPECT_TRUE(first_sequences(once, count) != in_file_order);
  options.order = ReadOrder::kShuffled;
  WindowStream shuffled(corpus, options);
  EXPECT_TRUE(first_sequences(shuffled, count) != in_file_order);
}

// Five sequences an epoch, two a window: carried over, the fifth begins a window that spans epochs.
TEST(WindowStream, CarriesAnIncompleteWindowIntoTheNextEpoch) {
  const Corpus corpus{"five", {10, 10, 10, 10, 10}};
  WindowStream stream(corpus, windows_of(2, 10));
  const std::vector<std::int64_t> epochs = {0, 0, 0, 1, 1, 2, 2, 2, 3, 3};
  for (const std::int64_t epoch : epochs) {
    const Window window = stream.next();
    EXPECT_EQ(window.epoch, epoch);
    EXPECT_EQ(window.sequences.size(), 2U);
  }
  EXPECT_EQ(stream.dropped_sequences(), 0);
}

TEST(WindowStream, BeginsInALaterEpochAsAStreamThatDropsComesThere) {
  const Corpus corpus = random_corpus(3, 200, 300);
  WindowOptions options = windows_of(2, 512);
  options.last_window = LastWindow::kDrop;
  WindowStream whole(corpus, options);
  Window expected = whole.next();
  while (expected.epoch < 2) expected = whole.next();
  options.first_epoch = 2;
  WindowStream later(corpus, options);
  const Window window = later.next();
  EXPECT_EQ(window.epoch, 2);
  EXPECT_EQ(window.sequences, expected.sequences);
  options.first_epoch = -1;
  EXPECT_THROW(WindowStream(corpus, options), ConfigError);
}

TEST(WindowStream, DropsAnIncompleteWindowOnRequest) {
  const Corpus corpus{"five", {10, 10, 10, 10, 10}};
  WindowOptions options = windows_of(2, 10);
  options.last_window = LastWindow::kDrop;
  WindowStream stream(corpus, options);
  for (const std::int64_t epoch : {0, 0, 1, 1, 2}) EXPECT_EQ(stream.next().epoch, epoch);
  EXPECT_EQ(stream.dropped_sequences(), 2);
}

TEST(WindowStream, FillsAWindowFromSeveralEpochsOfASmallCorpus) {
  const Corpus corpus{"one", {3}};
  WindowStream stream(corpus, windows_of(8, 10));
  const Window window = stream.next();
  ASSERT_EQ(window.sequences.size(), 8U);
  for (const Packed& packed : window.sequences) {
    EXPECT_EQ(packed, (Packed{{10, {3}}, {{0, 0}}}));
  }
  EXPECT_EQ(stream.next().epoch, 8);
}

TEST(WindowStream, RefusesToDropForeverWhenNoEpochFillsAWindow) {
  const Corpus corpus{"five", {10, 10, 10, 10, 10}};
  WindowOptions options = windows_of(6, 10);
  options.last_window = LastWindow::kDrop;
  WindowStream stream(corpus, options);
  EXPECT_THAT(error_of<ConfigError>([&] { stream.next(); }),
              HasSubstr("has 5 packed sequences and a window needs 6"));
}

TEST(WindowStream, RefusesACorpusWithoutATokenToPack) {
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{0, 0, 0}}) {
    const Corpus corpus{"hollow", lengths};
    EXPECT_THAT(error_of<ConfigError>([&] { WindowStream(corpus, windows_of(1, 10)); }),
                HasSubstr("hollow has no token to pack"));
  }
  const Corpus giants{"giants", {11, 12}};
  WindowOptions options = windows_of(1, 10);
  options.packing.oversize = Oversize::kDrop;
  EXPECT_THAT(error_of<ConfigError>([&] { WindowStream(giants, options); }),
              HasSubstr("dropped as longer"));
}

TEST(WindowStream, RefusesBadOptionsBeforeReading) {
  const Corpus corpus{"c", {5, 11, 25}};
  EXPECT_THAT(error_of<ConfigError>([&] { WindowStream(corpus, windows_of(0, 10)); }),
              HasSubstr("GBS is 1 or more"));
  EXPECT_THAT(error_of<ConfigError>([&] { WindowStream(corpus, windows_of(1, 0)); }),
              HasSubstr("0 tokens"));
  EXPECT_THAT(error_of<ConfigError>([&] { WindowStream(corpus, windows_of(1, 10)); }),
              HasSubstr("2 documents are longer"));
}

}  // namespace
}  // namespace libra
