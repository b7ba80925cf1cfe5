// Who fetches for its node (PlanOptions::node_fetch): of all destinations on a node that need keys
// of one KV group, each brings in some of what other nodes hold, and passes it on to the others.
//
//   relays.of(i, f) == i    // fetch i brings in fragment f of its sample itself
//   relays.of(i, f) == k    // fetch i gets it from the destination of fetch k, on the same node
//
// So a node's ports share what comes to it, and what goes round in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libra/plan/exchange.h"
#include "libra/plan/kv_groups.h"

namespace libra {

class Relays {
 public:
  /// Each fetch for itself.
  explicit Relays(std::size_t fetches) : first_(fetches, -1) {}

  /// `fragment` counts within the fetch's sample, and lies on another node.
  std::int32_t of(std::size_t fetch, std::size_t fragment) const {
    const std::int64_t first = first_[fetch];
    if (first < 0) return static_cast<std::int32_t>(fetch);
    return relay_[static_cast<std::size_t>(first) + fragment];
  }

 private:
  friend class RelayChooser;
  std::vector<std::int64_t> first_;  // by fetch: where its node and group begin in relay_; or -1
  std::vector<std::int32_t> relay_;  // by fragment
};

/// Fragments that lie on other nodes, from the last one that the node needs to the first: each
/// goes to a destination that needs all of it that any needs, until that has its even share of
/// them, then to the one that has received the fewest rows from other nodes so far, then the
/// lowest. `fetches` by (destination, KV shard, sample). O(n log n), and the fragments of the
/// groups' samples.
Relays choose_relays(const PlanOptions& options, const HomeLayout& layout, const KvGroups& groups,
                     const std::vector<KvFetch>& fetches);

}  // namespace libra
