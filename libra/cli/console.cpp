#include "libra/cli/console.h"

#include <fmt/format.h>

#include <utility>

namespace libra::cli {

Progress::Progress(const Console& console, std::string what, std::int64_t total)
    : console_(console), what_(std::move(what)), total_(total) {
  show();
}

Progress::~Progress() {
  if (console_.err_is_terminal) console_.err << "\r\033[K" << std::flush;
}

void Progress::advance() {
  ++done_;
  show();
}

void Progress::show() {
  if (!console_.err_is_terminal) return;
  console_.err << fmt::format("\r{} {}/{}\033[K", what_, done_, total_) << std::flush;
}

}  // namespace libra::cli
