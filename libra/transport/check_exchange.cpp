#include "libra/transport/check_exchange.h"

#include <fmt/format.h>

#include <string_view>

#include "libra/base/error.h"

namespace libra {
namespace {

void check_field(std::string_view field, std::int32_t value, std::int32_t end, const Tag& tag) {
  if (value >= 0 && value < end) return;
  throw ConfigError(fmt::format("{} {} of the tag ({}) is out of bounds: it must be in [0, {})",
                                field, value, describe(tag), end));
}

/// What is wrong with the view; empty if nothing is.
std::string_view fault(const StridedView& view) {
  if (view.rows < 0) return "rows must not be negative";
  if (view.row_bytes < 0) return "row_bytes must not be negative";
  if (view.rows > 1 && view.stride_bytes < view.row_bytes)
    return "rows overlap: stride_bytes must be at least row_bytes";
  if (view.bytes() > 0 && view.data == nullptr) return "data must not be null";
  return {};
}

void check_transfers(const std::vector<Transfer>& transfers, std::string_view kind,
                     std::int32_t worker, std::int32_t workers, const Tag& tag) {
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const auto& [peer, view, offset] = transfers[i];
    if (peer < 0 || peer >= workers) {
      throw ConfigError(
          fmt::format("worker {}, {}, {} {}: there is no worker {}; peers are [0, {})", worker,
                      describe(tag), kind, i, peer, workers));
    }
    if (const std::string_view wrong = fault(view); !wrong.empty()) {
      throw ConfigError(fmt::format(
          "worker {}, {}, {} {} with worker {}: {} (rows {}, row_bytes {}, stride_bytes {})",
          worker, describe(tag), kind, i, peer, wrong, view.rows, view.row_bytes,
          view.stride_bytes));
    }
  }
}

}  // namespace

void check_exchange(const Exchange& exchange, std::int32_t worker, std::int32_t workers) {
  const Tag& tag = exchange.tag;
  if (tag.step < 0)
    throw ConfigError(fmt::format("step {} of the tag must not be negative", tag.step));
  check_field("chunk", tag.chunk, 256, tag);
  check_field("round", tag.round, 16, tag);
  check_transfers(exchange.sends, "send", worker, workers, tag);
  check_transfers(exchange.receives, "receive", worker, workers, tag);
}

void check_options(const TransportOptions& options) {
  if (options.deadline.count() > 0) return;
  throw ConfigError(fmt::format("a transport's deadline of {} ms is none: give at least 1 ms",
                                options.deadline.count()));
}

}  // namespace libra
