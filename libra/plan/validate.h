// Is this plan right? Checks that do not use the code that decided, and name what is broken.
//
//   for (const Violation& v : validate(plan)) fmt::print("{}: {}\n", v.rule, v.detail);
#pragma once

#include <string>
#include <vector>

#include "libra/plan/pool_plan.h"

namespace libra {

struct Violation {
  std::string rule;    ///< which promise is broken, as in the list below
  std::string detail;  ///< where, and the values
};

/// Empty if the plan keeps every promise:
///   options      options and sequences obey every rule
///   homes        every token of every sequence has one home, the one that the options say
///   tiles        every (query token, head) is computed by exactly one tile, none is padding
///   placement    every tile has one destination within the pool; loads are their sums
///   queries      every moved tile's rows come from its home, each once, into rows of their own
///   keys         every piece finds all its keys at its destination, local or fetched once
///   fetches      every fetch is assembled from its keys' homes, each key once, and is used; with
///                node fetch, from its relays what no worker of the node holds
/// Stops after the first of options, homes, tiles and placement that is broken, as what follows
/// would make no sense. Safe for any numbers. O(n log n).
std::vector<Violation> validate(const PoolPlan& plan);

/// Throws PlanError that names the first violation and their number.
void require_valid(const PoolPlan& plan);

}  // namespace libra
