// Who fetches for its node: of all destinations on a node that need keys of one KV group, the one
// that needs most of them (PlanOptions::node_fetch).
//
//   relay[i] == i    // fetch i brings in itself what other nodes hold
//   relay[i] == k    // fetch i gets that from the destination of fetch k, on the same node
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/exchange.h"
#include "libra/plan/kv_groups.h"

namespace libra {

/// By fetch, the index of its relay. Among fetches of a group that are as long, the relay is the
/// destination that has received the fewest rows from other nodes so far, then the lowest.
/// `fetches` by (destination, KV shard, sample). O(n log n), and the fragments of the relays'
/// samples.
std::vector<std::int32_t> choose_relays(const PlanOptions& options, const HomeLayout& layout,
                                        const KvGroups& groups,
                                        const std::vector<KvFetch>& fetches);

}  // namespace libra
