#include "python/bindings/window_counter.h"

#include <fmt/format.h>

#include <utility>

#include "libra/base/error.h"

namespace libra::python {

void check_windows(std::vector<std::int64_t> lengths, const WindowOptions& options) {
  const Corpus corpus{"lengths", std::move(lengths)};
  WindowOptions single = options;
  single.sequences = 1;
  WindowStream sequences(corpus, single);
  for (std::int64_t count = 0; count < options.sequences; ++count) {
    if (sequences.next().epoch == 0) continue;
    throw ConfigError(fmt::format(
        "the {} documents fill {} packed sequences of {} tokens, and an optimizer step takes gbs "
        "{}: choose a smaller gbs or seq_len, or give more documents",
        corpus.lengths.size(), count, options.packing.tokens, options.sequences));
  }
}

std::int64_t WindowCounter::windows_in(std::int64_t epoch, const std::function<void()>& pause) {
  if (options_.last_window == LastWindow::kDrop) {
    WindowOptions from = options_;
    from.first_epoch = epoch;
    WindowStream windows(corpus_, from);
    std::int64_t count = 0;
    for (; windows.next().epoch == epoch; ++count) pause();
    return count;
  }
  if (!windows_) windows_.emplace(corpus_, options_);
  while (counts_.empty() || counts_.rbegin()->first <= epoch) {
    ++counts_[windows_->next().epoch];
    pause();
  }
  const auto found = counts_.find(epoch);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace libra::python
