// Groupings and reading policies by name, for Python's words.
#pragma once

#include <string_view>

#include "libra/corpus/window.h"
#include "libra/plan/pool_assignment.h"

namespace libra::python {

/// The inverse of grouping_name. Throws ConfigError that lists the names.
Grouping parse_grouping(std::string_view name);

/// "shuffled", "file-order-once", "file-order". Throws ConfigError that lists them.
ReadOrder parse_order(std::string_view name);

/// "carry", "drop". Throws ConfigError that lists them.
LastWindow parse_last_window(std::string_view name);

}  // namespace libra::python
