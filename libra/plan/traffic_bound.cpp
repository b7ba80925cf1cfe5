#include "libra/plan/traffic_bound.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/plan/tile_traffic.h"
#include "libra/plan/traffic.h"

namespace libra {
namespace {

// Rows of keys of one sample that must be fetched, all workers and KV shards together. `users` are
// those of one KV shard, longest prefix first; all shards have the same.
std::int64_t fetched_keys(const PoolPlan& plan, std::span<const TileTraffic::User> users,
                          std::int64_t most_load) {
  const std::int64_t shards = plan.heads().kv_shards;
  const auto workers_for = [most_load](std::int64_t work) {
    return (work + most_load - 1) / most_load;
  };
  std::int64_t work = 0;
  std::int64_t alone = 0;  // tiles of which no two fit on one worker
  std::int64_t keys = 0;
  for (std::size_t i = 0; i < users.size(); ++i) {
    const std::int64_t cost = plan.tiling.block_of(users[i].tile).cost;
    work += cost;
    alone += cost > most_load / 2 ? 1 : 0;
    const std::int64_t shorter = i + 1 < users.size() ? users[i + 1].tokens : 0;
    const std::int64_t by_shard = shards * (std::max(workers_for(work), alone) - 1);
    const std::int64_t by_worker = workers_for(shards * work) - plan.options.tp;
    keys += std::max<std::int64_t>({0, by_shard, by_worker}) * (users[i].tokens - shorter);
  }
  return keys;
}

struct OwnTile {
  std::int64_t cost = 0;
  std::int64_t bytes = 0;
};

// The fewest bytes with which `excess` work leaves a home; tiles may be cut anywhere.
double least_exported(std::vector<OwnTile>& tiles, std::int64_t excess) {
  std::sort(tiles.begin(), tiles.end(), [](const OwnTile& a, const OwnTile& b) {
    return static_cast<double>(a.cost) * static_cast<double>(b.bytes) >
           static_cast<double>(b.cost) * static_cast<double>(a.bytes);
  });
  double bytes = 0;
  for (const OwnTile& tile : tiles) {
    if (excess <= 0) break;
    const double share =
        std::min(1.0, static_cast<double>(excess) / static_cast<double>(tile.cost));
    bytes += share * static_cast<double>(tile.bytes);
    excess -= tile.cost;
  }
  return bytes;
}

double exported_bytes(const PoolPlan& plan, const TileTraffic& traffic, std::int64_t most_load) {
  std::vector<std::vector<OwnTile>> own(at(plan.workers()));
  std::vector<std::int64_t> load(at(plan.workers()), 0);
  for (std::int32_t tile = 0; tile < plan.tiling.tiles(); ++tile) {
    const std::int64_t cost = plan.tiling.block_of(tile).cost;
    if (cost == 0) continue;
    const std::int32_t home = plan.tiling.home_of(tile);
    own[at(home)].push_back({cost, traffic.bytes_away(tile)});
    load[at(home)] += cost;
  }
  double bytes = 0;
  for (std::size_t home = 0; home < own.size(); ++home) {
    if (load[home] > most_load) bytes += least_exported(own[home], load[home] - most_load);
  }
  return bytes;
}

}  // namespace

std::int64_t forward_bytes_bound(const PoolPlan& plan) {
  const std::int64_t most_load = plan.placement.heaviest();
  if (most_load == 0) return 0;
  PlanOptions options = plan.options;
  options.inter_node_weight = 0;
  const TileTraffic traffic(options, plan.layout, plan.tiling);
  std::int64_t keys = 0;
  for (std::int32_t group = 0; group < traffic.groups(); group += plan.heads().kv_shards) {
    keys += fetched_keys(plan, traffic.users_of(group), most_load);
  }
  return keys * traffic.key_token_bytes() +
         static_cast<std::int64_t>(exported_bytes(plan, traffic, most_load));
}

double bytes_over_bound(const PoolPlan& plan) {
  PoolPlan forward = plan;
  forward.options.return_lse = false;
  forward.options.backward = BackwardMode::kKeep;
  const std::int64_t bytes = forward_traffic(forward).total();
  const std::int64_t bound = forward_bytes_bound(plan);
  if (bytes == 0) return 1;
  if (bound == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(bytes) / static_cast<double>(bound);
}

}  // namespace libra
