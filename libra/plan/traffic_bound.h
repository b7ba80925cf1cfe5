// The fewest bytes with which any placement of the same tiles could be as balanced: what a plan is
// measured against.
//
//   const std::int64_t bound = forward_bytes_bound(plan);   // plan sends total / bound times that
//
// Two facts, whose bytes add up. Keys: the tiles that need key y of a KV group have more work than
// one worker may have, so at least N(y) workers need it, and all but its home must fetch it; N is
// the work over the heaviest load, rounded up, or the number of tiles of which no two fit on one
// worker. And all KV shards of y have the same home (TP homes), which may not have more work than
// the heaviest load either: the workers that take the rest fetch at least one shard each. Queries:
// a home with more work of its own than the heaviest load must send the rest away, at best those
// rows that carry the most work a byte. Not a bound on time or on any one link.
#pragma once

#include <cstdint>

#include "libra/plan/pool_plan.h"

namespace libra {

/// Bytes of one layer's forward pass (LSE not counted). O(tiles log tiles + needs).
std::int64_t forward_bytes_bound(const PoolPlan& plan);

/// The plan's forward bytes over the bound; 1 if both are 0, infinite if only the bound is.
double bytes_over_bound(const PoolPlan& plan);

}  // namespace libra
