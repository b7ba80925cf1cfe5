#include "python/bindings/groupings.h"

#include <fmt/format.h>

#include "libra/base/error.h"

namespace libra::python {

Grouping parse_grouping(std::string_view name) {
  for (const Grouping grouping :
       {Grouping::kVrsp, Grouping::kProduction, Grouping::kZigzag, Grouping::kZigzagSwap}) {
    if (grouping_name(grouping) == name) return grouping;
  }
  throw ConfigError(
      fmt::format("no grouping '{}': vrsp, production, zigzag and zigzag_swap are there", name));
}

ReadOrder parse_order(std::string_view name) {
  if (name == "shuffled") return ReadOrder::kShuffled;
  if (name == "file-order-once") return ReadOrder::kFileOrderOnce;
  if (name == "file-order") return ReadOrder::kFileOrder;
  throw ConfigError(
      fmt::format("no order '{}': shuffled, file-order-once and file-order are there", name));
}

LastWindow parse_last_window(std::string_view name) {
  if (name == "carry") return LastWindow::kCarryOver;
  if (name == "drop") return LastWindow::kDrop;
  throw ConfigError(fmt::format("no last_window '{}': carry and drop are there", name));
}

}  // namespace libra::python
