// Options that only some placers look at: to set one for others is a mistake, which users are told
// of where they say what they want. Plans may have them all the same.
//
//   check_used(options, false, {{options.placer}}, option_name);   // names as in PlanOptions
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libra/plan/plan_options.h"

namespace libra {

/// How users spell an option that PlanOptions calls `name`.
using Spelling = std::string (*)(std::string_view name);

/// As PlanOptions calls it.
std::string option_name(std::string_view name);

/// Throws ConfigError if an option, or a cluster to plan for, is set that none of these placers
/// looks at. Requires a placer.
void check_used(const PlanOptions& options, bool for_cluster, std::span<const PlacerKind> placers,
                Spelling spelling);

}  // namespace libra
