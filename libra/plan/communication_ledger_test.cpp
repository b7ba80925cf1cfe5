#include "libra/plan/communication_ledger.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/plan/pool_plan.h"
#include "libra/plan/random_plans.h"

namespace libra {
namespace {

// Key by key: which are at which node, held or fetched.
class NaiveNodes {
 public:
  explicit NaiveNodes(const PoolPlan& plan) : plan_(plan), groups_(plan.options, plan.layout) {
    for (const Fragment& fragment : plan.layout.fragments) {
      for (std::int32_t shard = 0; shard < plan.options.head_shards; ++shard) {
        const std::int32_t home = fragment.part * plan.options.tp + groups_.head_part(shard);
        for (std::int64_t token = fragment.tokens.begin; token < fragment.tokens.end; ++token) {
          keys_.insert({plan.options.node_of(home), groups_.index(fragment.sample, shard), token});
        }
      }
    }
  }

  std::int64_t crossing(std::int32_t tile, std::int32_t node) const {
    const HeadSplit heads = plan_.heads();
    const AttentionShape& shape = plan_.options.shape;
    const DType storage = plan_.options.storage;
    std::int64_t bytes = kv_token_bytes(shape, heads.kv_shard_heads, storage) *
                         static_cast<std::int64_t>(missing(tile, node).size());
    if (plan_.options.node_of(plan_.tiling.home_of(tile)) == node) return bytes;
    return bytes +
           plan_.tiling.block_of(tile).tokens * (q_token_bytes(shape, heads.shard_heads, storage) +
                                                 o_token_bytes(shape, heads.shard_heads, storage));
  }

  void put(std::int32_t tile, std::int32_t node) { keys_.merge(missing(tile, node)); }

 private:
  using Keys = std::set<std::tuple<std::int32_t, std::int32_t, std::int64_t>>;

  Keys missing(std::int32_t tile, std::int32_t node) const {
    Keys missing;
    for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
      const std::int32_t group = groups_.index(piece.sample, plan_.tiling.shard_of(tile));
      for (std::int64_t token = 0; token < groups_.needed(piece); ++token) {
        if (keys_.count({node, group, token}) == 0) missing.insert({node, group, token});
      }
    }
    return missing;
  }

  const PoolPlan& plan_;
  KvGroups groups_;
  Keys keys_;  // node, group, token
};

TEST(CommunicationLedger, CountsWhatCrossesToANodeOnce) {
  int crossings = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    auto [options, sequences] = testing::random_problem(seed, 60);
    options.node_fetch = true;
    const PoolPlan plan = make_plan(options, sequences);
    CommunicationLedger ledger(plan.options, plan.layout, plan.tiling);
    NaiveNodes naive(plan);
    Rng rng(seed, 6);
    std::vector<std::int32_t> tiles(at(plan.tiling.tiles()));
    std::iota(tiles.begin(), tiles.end(), 0);
    rng.shuffle(tiles);
    for (const std::int32_t tile : tiles) {
      const std::vector<std::int64_t> crossing = ledger.crossing(tile);
      ASSERT_EQ(crossing.size(), at(options.node_of(plan.workers() - 1) + 1));
      for (std::size_t node = 0; node < crossing.size(); ++node) {
        ASSERT_EQ(crossing[node], naive.crossing(tile, static_cast<std::int32_t>(node)));
        crossings += crossing[node] > 0 ? 1 : 0;
      }
      const auto worker = static_cast<std::int32_t>(rng.below(at(plan.workers())));
      ledger.commit(tile, worker);
      naive.put(tile, options.node_of(worker));
    }
  }
  EXPECT_GT(crossings, 1000);
}

TEST(CommunicationLedger, DoesNotLookAtNodesWithoutNodeFetch) {
  PlanOptions options;
  const PoolPlan plan = make_plan(options, {{100, {100}}, {100, {7}}});
  EXPECT_TRUE(CommunicationLedger(options, plan.layout, plan.tiling).crossing(0).empty());
}

}  // namespace
}  // namespace libra
