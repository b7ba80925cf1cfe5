#include "libra/corpus/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/units.h"
#include "libra/corpus/sequence_packer.h"

namespace libra {
namespace {

std::unique_ptr<SequencePacker> make_algorithm(const PackingOptions& options) {
  check_packing_options(options);
  if (options.packing == Packing::kFirstFit) return make_first_fit(options);
  if (options.packing == Packing::kConcat) return make_concat(options);
  return make_best_fit_decreasing(options);
}

bool is_oversize(std::int64_t tokens, const PackingOptions& options) {
  return tokens > options.tokens && options.packing != Packing::kConcat;
}

[[noreturn]] void refuse_oversize(std::int64_t count, std::int64_t longest,
                                  const PackingOptions& options) {
  throw ConfigError(fmt::format(
      "{} document{} longer than the packed sequence of {} tokens (the longest has {}): choose "
      "oversize truncate, split or drop, or longer sequences",
      count, count == 1 ? " is" : "s are", format_size(options.tokens), longest));
}

}  // namespace

void check_packing_options(const PackingOptions& options) {
  if (options.tokens < 1) {
    throw ConfigError(
        fmt::format("packed sequences of {} tokens: 1 or more, as in 256K", options.tokens));
  }
  if (options.tokens > kMaxSequenceTokens) {
    throw ConfigError(fmt::format("packed sequences of {} tokens: at most {}",
                                  format_size(options.tokens), format_size(kMaxSequenceTokens)));
  }
  if (options.open_sequences < 1) {
    throw ConfigError(fmt::format("first-fit over {} open sequences: 1 or more, 32 by default",
                                  options.open_sequences));
  }
  if (options.group_documents < 0) {
    throw ConfigError(fmt::format("groups of {} documents: 1 or more, or 0 for all at once",
                                  options.group_documents));
  }
}

void check_oversize(const std::vector<std::int64_t>& lengths, const PackingOptions& options) {
  if (options.oversize != Oversize::kError) return;
  std::int64_t count = 0;
  std::int64_t longest = 0;
  for (const std::int64_t tokens : lengths) {
    count += is_oversize(tokens, options) ? 1 : 0;
    longest = std::max(longest, tokens);
  }
  if (count > 0) refuse_oversize(count, longest, options);
}

DocumentPacker::DocumentPacker(const PackingOptions& options)
    : options_(options), algorithm_(make_algorithm(options)) {}
DocumentPacker::~DocumentPacker() = default;
DocumentPacker::DocumentPacker(DocumentPacker&&) noexcept = default;
DocumentPacker& DocumentPacker::operator=(DocumentPacker&&) noexcept = default;

void DocumentPacker::add(std::int64_t document, std::int64_t tokens) {
  LIBRA_CHECK(tokens >= 0, "document {} has {} tokens", document, tokens);
  ++report_.documents;
  report_.tokens += tokens;
  if (tokens == 0) ++report_.empty_documents;
  if (is_oversize(tokens, options_)) {
    add_oversize(document, tokens);
  } else if (tokens > 0 || options_.keep_empty) {
    algorithm_->add({{document, 0}, tokens}, ready_);
  }
  count_emitted();
}

void DocumentPacker::add_oversize(std::int64_t document, std::int64_t tokens) {
  ++report_.oversize_documents;
  report_.oversize_tokens += tokens;
  switch (options_.oversize) {
    case Oversize::kError:
      refuse_oversize(1, tokens, options_);
    case Oversize::kTruncate:
      ++report_.truncated_documents;
      report_.truncated_tokens += tokens - options_.tokens;
      algorithm_->add({{document, 0}, options_.tokens}, ready_);
      break;
    case Oversize::kSplit:
      ++report_.split_documents;
      for (std::int64_t first = 0; first < tokens; first += options_.tokens) {
        ++report_.split_samples;
        algorithm_->add({{document, first}, std::min(options_.tokens, tokens - first)}, ready_);
      }
      break;
    case Oversize::kDrop:
      ++report_.dropped_documents;
      report_.dropped_tokens += tokens;
      break;
  }
}

void DocumentPacker::finish() {
  algorithm_->finish(ready_);
  count_emitted();
}

std::optional<Packed> DocumentPacker::take() {
  if (ready_.empty()) return std::nullopt;
  std::optional<Packed> next = std::move(ready_.front());
  ready_.pop_front();
  --counted_;
  return next;
}

void DocumentPacker::count_emitted() {
  for (; counted_ < ready_.size(); ++counted_) {
    const PackedSequence& sequence = ready_[counted_].sequence;
    const auto& samples = sequence.sample_tokens;
    ++report_.sequences;
    report_.samples += static_cast<std::int64_t>(samples.size());
    report_.padding_tokens +=
        sequence.tokens - std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
  }
}

PackedCorpus pack(const std::vector<std::int64_t>& lengths, const PackingOptions& options) {
  DocumentPacker packer(options);
  check_oversize(lengths, options);
  PackedCorpus result;
  const auto take_ready = [&] {
    while (std::optional<Packed> next = packer.take()) result.sequences.push_back(std::move(*next));
  };
  std::int64_t document = 0;
  for (const std::int64_t tokens : lengths) {
    packer.add(document++, tokens);
    take_ready();
  }
  packer.finish();
  take_ready();
  result.report = packer.report();
  return result;
}

}  // namespace libra
