#include "libra/corpus/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "libra/base/error.h"

namespace libra {
namespace {

void check_has_tokens(const Corpus& corpus, const PackingOptions& packing) {
  const bool drops = packing.oversize == Oversize::kDrop && packing.packing != Packing::kConcat;
  const auto packable = [&](std::int64_t tokens) {
    return tokens > 0 && !(drops && tokens > packing.tokens);
  };
  if (std::any_of(corpus.lengths.begin(), corpus.lengths.end(), packable)) return;
  throw ConfigError(fmt::format("corpus {} has no token to pack: its {} documents are empty{}",
                                corpus.name, corpus.lengths.size(),
                                drops ? " or dropped as longer than the packed sequence" : ""));
}

}  // namespace

WindowStream::WindowStream(const Corpus& corpus, const WindowOptions& options)
    : corpus_(corpus),
      options_(options),
      packer_(options.packing),
      order_(corpus.lengths),
      epoch_(options.first_epoch - 1) {
  if (options.sequences < 1) {
    throw ConfigError(
        fmt::format("windows of {} packed sequences: GBS is 1 or more", options.sequences));
  }
  if (options.first_epoch < 0)
    throw ConfigError(fmt::format("the first epoch is {}: 0 or more", options.first_epoch));
  check_oversize(corpus.lengths, options.packing);
  check_has_tokens(corpus, options.packing);
  begin_epoch();
}

Window WindowStream::next() {
  Window window;
  while (static_cast<std::int64_t>(window.sequences.size()) < options_.sequences) {
    if (std::optional<Packed> sequence = packer_.take()) {
      if (window.sequences.empty()) window.epoch = epoch_;
      window.sequences.push_back(std::move(*sequence));
    } else if (!order_.exhausted()) {
      read_until_ready();
    } else {
      if (options_.last_window == LastWindow::kDrop) drop_incomplete(window);
      begin_epoch();
    }
  }
  ++windows_in_epoch_;
  return window;
}

// The epoch's last document also finishes its open sequences, so that all sequences that wait to be
// taken are always of one epoch.
void WindowStream::read_until_ready() {
  const std::int64_t before = packer_.report().sequences;
  while (packer_.report().sequences == before && !order_.exhausted()) {
    const DocumentOrder::Document document = order_.next();
    packer_.add(document.index, document.tokens);
    if (order_.exhausted()) packer_.finish();
  }
}

void WindowStream::begin_epoch() {
  ++epoch_;
  windows_in_epoch_ = 0;
  const bool file_order = options_.order == ReadOrder::kFileOrder ||
                          (options_.order == ReadOrder::kFileOrderOnce && epoch_ == 0);
  order_.restart(!file_order, options_.seed, epoch_);
}

void WindowStream::drop_incomplete(Window& window) {
  const auto incomplete = static_cast<std::int64_t>(window.sequences.size());
  if (windows_in_epoch_ == 0) {
    throw ConfigError(fmt::format(
        "epoch {} of corpus {} has {} packed sequences and a window needs {}: choose a smaller "
        "GBS, or carry incomplete windows over",
        epoch_, corpus_.name, incomplete, options_.sequences));
  }
  dropped_sequences_ += incomplete;
  window.sequences.clear();
}

}  // namespace libra
