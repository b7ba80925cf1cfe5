// How many windows the epochs of a run have, for who must know before the run: the length of a
// DataLoader.
//
//   WindowCounter counter(lengths, options);
//   counter.windows_in(3, [] {});
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "libra/corpus/window.h"

namespace libra::python {

/// Requires a positive GBS. Throws ConfigError for options that break a rule, documents that are
/// too long under Oversize::kError, and documents that do not fill one window in the first epoch.
/// Packs no more than a window.
void check_windows(std::vector<std::int64_t> lengths, const WindowOptions& options);

class WindowCounter {
 public:
  WindowCounter(std::vector<std::int64_t> lengths, const WindowOptions& options)
      : corpus_{"lengths", std::move(lengths)}, options_(options) {}

  /// Windows whose first sequence belongs to this epoch. Packs it, and, if windows are carried
  /// over, all before it that were not counted yet. Calls `pause` after each window; what that
  /// throws ends the counting, which may go on later.
  std::int64_t windows_in(std::int64_t epoch, const std::function<void()>& pause);

 private:
  Corpus corpus_;
  WindowOptions options_;
  std::optional<WindowStream> windows_;  // where counting stands, if windows are carried over
  std::map<std::int64_t, std::int64_t> counts_;  // by epoch; the last one goes on
};

}  // namespace libra::python
