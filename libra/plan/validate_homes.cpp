#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/plan_checks.h"
#include "libra/plan/pool_limits.h"

namespace libra {
namespace {

void check_part(const PoolPlan& plan, std::size_t index, Violations& violations) {
  const TokenPart& part = plan.layout.parts[index];
  const auto replica = static_cast<std::int32_t>(index) / plan.layout.parts_per_sequence;
  if (part.replica != replica) {
    violations.push_back({"homes", fmt::format("part {} says replica {}", index, part.replica)});
    return;
  }
  const std::int64_t tokens = plan.sequences[at(replica)].tokens;
  for (const TokenRange run : part.runs) {
    if (run.begin >= 0 && !run.empty() && run.end <= tokens) continue;
    violations.push_back({"homes", fmt::format("part {} has a run [{}, {}) of {} tokens", index,
                                               run.begin, run.end, tokens)});
  }
}

void check_coverage(const PoolPlan& plan, Violations& violations) {
  const TokenHomes homes(plan.layout);
  for (std::size_t replica = 0; replica < plan.sequences.size(); ++replica) {
    const std::int64_t token = homes.first_without_one_home(static_cast<std::int32_t>(replica),
                                                            plan.sequences[replica].tokens);
    if (token < 0) continue;
    violations.push_back(
        {"homes", fmt::format("token {} of sequence {} has not exactly one home", token, replica)});
  }
}

template <typename Item>
void compare(const char* name, const std::vector<Item>& expected, const std::vector<Item>& found,
             Violations& violations) {
  const auto differ = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  if (differ.first == expected.end() && differ.second == found.end()) return;
  violations.push_back({"homes", fmt::format("{} {} is not what the options and sequences give",
                                             name, differ.first - expected.begin())});
}

}  // namespace

void check_inputs(const PoolPlan& plan, Violations& violations) {
  try {
    check_options(plan.options, static_cast<std::int32_t>(plan.sequences.size()));
    check_sequences(plan.options, plan.sequences);
  } catch (const ConfigError& error) {
    violations.push_back({"options", error.what()});
  }
}

// Homes are given, not decided: beyond one home a token, they are what make_home_layout says.
void check_homes(const PoolPlan& plan, Violations& violations) {
  const HomeLayout& layout = plan.layout;
  const std::int32_t parts = plan.options.cp / plan.options.tp;
  if (layout.tp != plan.options.tp || layout.parts_per_sequence != parts ||
      layout.parts.size() != plan.sequences.size() * at(parts)) {
    violations.push_back({"homes", fmt::format("{} parts for {} sequences of {} parts",
                                               layout.parts.size(), plan.sequences.size(), parts)});
    return;
  }
  for (std::size_t part = 0; part < layout.parts.size(); ++part) check_part(plan, part, violations);
  if (!violations.empty()) return;
  check_coverage(plan, violations);
  try {
    const HomeLayout expected = make_home_layout(plan.options, plan.sequences);
    compare("part", expected.parts, layout.parts, violations);
    compare("sample", expected.samples, layout.samples, violations);
    compare("fragment", expected.fragments, layout.fragments, violations);
  } catch (const ConfigError& error) {
    violations.push_back({"homes", error.what()});
  }
}

}  // namespace libra
