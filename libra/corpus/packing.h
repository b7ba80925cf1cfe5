// Packing: from document lengths to packed sequences of a fixed token budget.
//
//   PackingOptions options;
//   options.tokens = 262144;
//   const PackedCorpus packed = pack(corpus.lengths, options);
//
// or as a stream, with no more in memory than the sequences that are still open:
//
//   DocumentPacker packer(options);
//   packer.add(document, tokens);  ...  packer.finish();
//   while (std::optional<Packed> sequence = packer.take()) use(*sequence);
//
//   first-fit              |aaaa bbb cc |dddddd ee  |   whole documents, few sequences open at once
//   best-fit-decreasing    |dddddd aaaa |bbb cc ee  |   whole documents, the longest first
//   concat                 |aaaa bbb cc d|ddddd ee  |   one stream, cut every `tokens` tokens
//
// What it is not: it neither shuffles documents nor groups sequences into windows (window.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "libra/corpus/packed_sequence.h"

namespace libra {

enum class Packing : std::uint8_t {
  /// In arrival order, into the first open sequence with room, oldest first. If none has room and
  /// `open_sequences` are open, the fullest (then the oldest) is emitted, as in packers that keep
  /// leftovers between batches: what has room stays. A full sequence is emitted at once, the rest
  /// at the end, oldest first. O(open_sequences) a document.
  kFirstFit,
  /// Groups of `group_documents`, each sorted by decreasing length (ties: arrival), each document
  /// into the fullest sequence with room (ties: the older). A group's sequences come in the order
  /// in which their longest documents arrived, so that heavy and light ones stay mixed.
  /// O(n log n).
  kBestFitDecreasing,
  /// As Megatron does: a document that crosses a boundary goes on in the next sequence, as a
  /// sample of its own. Only the last sequence has padding, and no document is too long.
  kConcat,
};

/// What happens to a document longer than the budget, except under kConcat.
enum class Oversize : std::uint8_t {
  kError,     ///< ConfigError
  kTruncate,  ///< its first `tokens` tokens are kept
  kSplit,     ///< cut every `tokens` tokens, each piece a sample of its own
  kDrop,      ///< left out
};

/// "first-fit", "best-fit-decreasing", "concat"; "error", "truncate", "split", "drop".
std::string_view packing_name(Packing packing);
std::string_view oversize_name(Oversize oversize);

/// The inverse. Throws ConfigError that lists the names.
Packing parse_packing(std::string_view name);
Oversize parse_oversize(std::string_view name);

struct PackingOptions {
  std::int64_t tokens = 0;  ///< the budget of every sequence; must be set
  Packing packing = Packing::kFirstFit;
  Oversize oversize = Oversize::kError;
  /// Keeps documents without a token as samples of length 0, which is what trainers then see;
  /// otherwise they are left out.
  bool keep_empty = true;
  std::int64_t open_sequences = 32;  ///< first-fit: more pads less, and mixes over longer stretches
  std::int64_t group_documents = 100'000;  ///< best-fit-decreasing: documents a group; 0: all
};

/// Where a sample comes from: tokens [first_token, first_token + its length) of `document`.
struct SampleOrigin {
  std::int64_t document = 0;
  std::int64_t first_token = 0;

  friend bool operator==(const SampleOrigin&, const SampleOrigin&) = default;
};

/// A packed sequence and, for each of its samples, the origin.
struct Packed {
  PackedSequence sequence;
  std::vector<SampleOrigin> origins;

  friend bool operator==(const Packed&, const Packed&) = default;
};

/// What became of the documents. `tokens` = tokens in emitted sequences + truncated_tokens +
/// dropped_tokens once everything was emitted.
struct PackingReport {
  std::int64_t documents = 0;           ///< given to the packer
  std::int64_t tokens = 0;              ///< in them
  std::int64_t empty_documents = 0;     ///< of length 0, kept or not
  std::int64_t oversize_documents = 0;  ///< longer than the budget (0 for concat)
  std::int64_t oversize_tokens = 0;     ///< in them, before anything was cut
  std::int64_t truncated_documents = 0;
  std::int64_t truncated_tokens = 0;  ///< cut off
  std::int64_t split_documents = 0;
  std::int64_t split_samples = 0;      ///< samples that they became
  std::int64_t dropped_documents = 0;  ///< for their length; empty ones are not counted here
  std::int64_t dropped_tokens = 0;
  std::int64_t sequences = 0;  ///< emitted
  std::int64_t samples = 0;    ///< in them
  std::int64_t padding_tokens = 0;

  friend bool operator==(const PackingReport&, const PackingReport&) = default;
};

/// Throws ConfigError for options that no packer can work with (a budget below 1 or above
/// kMaxSequenceTokens, ...).
void check_packing_options(const PackingOptions& options);

/// Throws ConfigError if the policy is kError and documents are longer than the budget: it names
/// how many, the longest, and the other policies. O(n).
void check_oversize(const std::vector<std::int64_t>& lengths, const PackingOptions& options);

class SequencePacker;

/// Packs a stream of documents: applies the oversize policy, then the algorithm. Deterministic.
class DocumentPacker {
 public:
  /// Throws ConfigError for bad options.
  explicit DocumentPacker(const PackingOptions& options);
  ~DocumentPacker();
  DocumentPacker(DocumentPacker&&) noexcept;
  DocumentPacker& operator=(DocumentPacker&&) noexcept;

  /// Requires tokens >= 0. Throws ConfigError if it is too long and the policy is kError.
  void add(std::int64_t document, std::int64_t tokens);

  /// Emits what is still open; a next add() starts anew.
  void finish();

  /// The next emitted sequence, in order; nothing if add() or finish() has to come first.
  std::optional<Packed> take();

  /// Over everything added so far and, for sequences, samples and padding, emitted so far.
  const PackingReport& report() const { return report_; }

 private:
  void add_oversize(std::int64_t document, std::int64_t tokens);
  void count_emitted();

  PackingOptions options_;
  std::unique_ptr<SequencePacker> algorithm_;
  std::deque<Packed> ready_;
  std::size_t counted_ = 0;  // sequences at the front of ready_ that the report includes
  PackingReport report_;
};

struct PackedCorpus {
  std::vector<Packed> sequences;
  PackingReport report;
};

/// All documents, in file order. Throws ConfigError as check_oversize() does and for bad options.
PackedCorpus pack(const std::vector<std::int64_t>& lengths, const PackingOptions& options);

}  // namespace libra
