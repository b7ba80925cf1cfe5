// The windows of a training run: for each optimizer step, exactly GBS packed sequences, endlessly.
//
//   WindowOptions options;
//   options.sequences = 128;
//   options.packing.tokens = 262144;
//   WindowStream windows(corpus, options);
//   for (int step = 0; step < steps; ++step) plan(windows.next());
//
// An epoch reads every document once and ends with finished sequences (the last ones padded); the
// next epoch packs anew. The order depends on (corpus, options, epoch) alone, so every rank that
// holds the same ones sees the same windows. Lazy: next() packs no more than its window needs
// (best-fit-decreasing: whole groups).
//
// What it is not: it does not assign sequences to replicas or pools.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libra/corpus/corpus.h"
#include "libra/corpus/document_order.h"
#include "libra/corpus/packing.h"

namespace libra {

enum class ReadOrder : std::uint8_t {
  kShuffled,       ///< another order each epoch
  kFileOrderOnce,  ///< file order in the first epoch, shuffled afterwards
  kFileOrder,      ///< file order in every epoch: windows may repeat
};

/// What happens at the end of an epoch to sequences that do not fill a window.
enum class LastWindow : std::uint8_t {
  /// They begin the next epoch's first window: nothing is lost. A window may then span epochs and
  /// hold a document once per epoch; a corpus smaller than a window fills it from several.
  kCarryOver,
  /// They are left out and counted. An epoch that fills no window is a ConfigError.
  kDrop,
};

/// "shuffled", "file-order-once", "file-order".
std::string_view order_name(ReadOrder order);

/// The same words; "carry", "drop". Throw ConfigError that lists them.
ReadOrder parse_order(std::string_view name);
LastWindow parse_last_window(std::string_view name);

struct WindowOptions {
  std::int64_t sequences = 0;  ///< GBS, packed sequences a window; must be set
  PackingOptions packing;
  ReadOrder order = ReadOrder::kShuffled;
  LastWindow last_window = LastWindow::kCarryOver;
  std::uint64_t seed = 0;
  std::int64_t first_epoch = 0;  ///< where the stream begins; nothing is carried over into it
};

struct Window {
  std::vector<Packed> sequences;  ///< WindowOptions::sequences of them, in production order
  std::int64_t epoch = 0;         ///< of the first of them, from 0
};

class WindowStream {
 public:
  /// `corpus` must outlive the stream. Throws ConfigError for bad options, for documents longer
  /// than the budget under Oversize::kError, and for a corpus that has no token to pack (empty,
  /// only documents of length 0, all dropped).
  WindowStream(const Corpus& corpus, const WindowOptions& options);
  WindowStream(Corpus&&, const WindowOptions&) = delete;

  /// Throws ConfigError under LastWindow::kDrop if an epoch ends before it has filled one window:
  /// it says how many sequences there are and how many are wanted.
  Window next();

  /// Over all epochs so far; it runs ahead of next() by the sequences that are still open.
  const PackingReport& report() const { return packer_.report(); }

  /// Sequences left out by LastWindow::kDrop so far.
  std::int64_t dropped_sequences() const { return dropped_sequences_; }

 private:
  void begin_epoch();
  void read_until_ready();
  void drop_incomplete(Window& window);

  const Corpus& corpus_;
  WindowOptions options_;
  DocumentPacker packer_;
  DocumentOrder order_;
  std::int64_t epoch_ = -1;  // of the sequences in packer_
  std::int64_t windows_in_epoch_ = 0;
  std::int64_t dropped_sequences_ = 0;
};

}  // namespace libra
