#include "libra/plan/used_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "libra/base/error.h"

namespace libra {
namespace {

struct Option {
  std::string_view name;
  bool set;
  bool (*is_for)(PlacerKind);
  std::string_view placers;
};

bool is_balanced(PlacerKind placer) { return placer == PlacerKind::kBalanced; }

std::vector<std::string_view> names_of(std::span<const PlacerKind> placers) {
  std::vector<std::string_view> names;
  names.reserve(placers.size());
  for (const PlacerKind placer : placers) names.push_back(placer_name(placer));
  return names;
}

}  // namespace

std::string option_name(std::string_view name) { return std::string(name); }

void check_used(const PlanOptions& options, bool for_cluster, std::span<const PlacerKind> placers,
                Spelling spelling) {
  constexpr std::string_view kBalanced = "balanced";
  constexpr std::string_view kByLinks = "balanced or reserve";
  const std::array<Option, 4> some = {{
      {"search_us", options.search_us > 0, is_balanced, kBalanced},
      {"inter_node_weight", options.inter_node_weight > 0, is_balanced, kBalanced},
      {"node_fetch", options.node_fetch, looks_at_links, kByLinks},
      {"cluster", for_cluster, looks_at_links, kByLinks},
  }};
  for (const Option& option : some) {
    if (!option.set || std::any_of(placers.begin(), placers.end(), option.is_for)) continue;
    const std::string name = spelling(option.name);
    throw ConfigError(fmt::format("{} is for placer {}, not {}: use that placer, or leave {} out",
                                  name, option.placers, fmt::join(names_of(placers), ", "), name));
  }
}

}  // namespace libra
