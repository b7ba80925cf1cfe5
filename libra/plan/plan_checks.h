// The checks behind validate() (validate.h), one per stage of a plan. Each adds what it finds and
// may rely on those before it having found nothing; none reads out of bounds whatever the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "libra/plan/token_homes.h"
#include "libra/plan/validate.h"

namespace libra {

using Violations = std::vector<Violation>;

void check_inputs(const PoolPlan& plan, Violations& violations);
void check_homes(const PoolPlan& plan, Violations& violations);
void check_tiles(const PoolPlan& plan, const TokenHomes& homes, Violations& violations);
void check_placement(const PoolPlan& plan, Violations& violations);
void check_exchange(const PoolPlan& plan, const TokenHomes& homes, Violations& violations);

/// The worker whose own rows hold these keys.
std::int32_t home_worker(const PoolPlan& plan, const TokenHomes::Place& home,
                         std::int32_t kv_shard);

/// Of the fetches of one node and KV group, by the first token of each stretch that a worker of
/// another node holds: the fetch whose destination brings it in.
using StretchRelays = std::map<std::int64_t, std::size_t>;

/// By fetch; empty without node fetch, where each fetches for itself. Requires fetches of samples,
/// KV shards and workers that exist.
std::vector<std::shared_ptr<const StretchRelays>> expected_relays(const PoolPlan& plan,
                                                                  const TokenHomes& homes);

}  // namespace libra
