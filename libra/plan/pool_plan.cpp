#include "libra/plan/pool_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/fingerprint.h"
#include "libra/base/version.h"
#include "libra/plan/plan_fields.h"
#include "libra/plan/pool_limits.h"
#include "libra/plan/read_limits.h"

namespace libra {
namespace {

void add_options(Fingerprint& fingerprint, const PlanOptions& options) {
  visit_options(options, [&fingerprint](const char*, auto value) {
    fingerprint.add(static_cast<std::int64_t>(value));
  });
}

void add_runs(Fingerprint& fingerprint, const TokenRange& run) {
  fingerprint.add(run.begin);
  fingerprint.add(run.end);
}

// Every level with its size, so that a run which changes its part changes the fingerprint.
template <typename Item>
void add_runs(Fingerprint& fingerprint, const std::vector<Item>& items) {
  fingerprint.add(static_cast<std::int64_t>(items.size()));
  for (const Item& item : items) add_runs(fingerprint, item);
}

void add_moves(Fingerprint& fingerprint, const std::vector<RowMove>& moves) {
  fingerprint.add(static_cast<std::int64_t>(moves.size()));
  for (const RowMove& move : moves) {
    for (const std::int64_t number :
         {std::int64_t{move.from}, std::int64_t{move.to}, std::int64_t{move.shard},
          std::int64_t{move.round}, move.from_row, move.to_row, move.rows}) {
      fingerprint.add(number);
    }
  }
}

// Before tiling: sequences that would need far more blocks than there are costs must not cost
// memory first.
void require_enough_costs(const PlanOptions& options, const std::vector<PackedSequence>& sequences,
                          std::size_t costs) {
  std::int64_t tokens = 0;
  for (const PackedSequence& sequence : sequences) {
    for (const std::int64_t sample : sequence.sample_tokens) tokens += sample;
  }
  if (tokens / options.block_tokens > static_cast<std::int64_t>(costs)) {
    throw PlanError(
        fmt::format("{} costs for {} tokens in blocks of {}", costs, tokens, options.block_tokens));
  }
}

void require_possible_costs(const std::vector<std::int64_t>& block_costs,
                            std::int32_t head_shards) {
  std::int64_t left = kMaxTotalCost / head_shards;
  for (const std::int64_t cost : block_costs) {
    if (cost < 0 || cost > left) {
      throw PlanError(
          fmt::format("a block of cost {}: costs must not be negative, nor {} or more together",
                      cost, kMaxTotalCost));
    }
    left -= cost;
  }
}

// Query-key pairs that a worker has on average, in tiles: of as many heads as one has.
std::int64_t mean_tile_pairs(const PoolPlan& plan) {
  std::int64_t pairs = 0;
  for (const PoolSample& sample : plan.layout.samples) pairs += query_key_pairs({0, sample.tokens});
  return pairs / plan.workers() * plan.options.head_shards;
}

// Tiles that are too large for what is left under the cap are halved, and halved again while that
// makes the heaviest worker lighter; all others stay as they are.
void cut_until_balanced(PoolPlan& plan, const PieceCost& cost,
                        const std::vector<std::int64_t>& other_work) {
  constexpr std::int64_t kSmallestShare = 64;
  const std::int64_t mean = mean_tile_pairs(plan);
  for (std::int64_t share = 2; share <= kSmallestShare; share *= 2) {
    if (plan.placement.heaviest() <= plan.placement.cap) return;
    PlanOptions options = plan.options;
    options.max_tile_pairs = std::max<std::int64_t>(1, mean / share);
    Tiling tiling = make_tiling(options, plan.layout, cost);
    Placement placement = place_tiles(options, plan.layout, tiling, other_work);
    if (placement.heaviest() >= plan.placement.heaviest()) continue;
    plan.options = options;
    plan.tiling = std::move(tiling);
    plan.placement = std::move(placement);
  }
}

}  // namespace

std::int32_t PoolPlan::tiles_moved() const {
  std::int32_t moved = 0;
  for (const std::int64_t row : exchange.tile_arena_row) moved += row >= 0 ? 1 : 0;
  return moved;
}

PoolPlan make_plan(const PlanOptions& options, std::vector<PackedSequence> sequences,
                   const PieceCost& cost, const std::vector<std::int64_t>& other_work) {
  check_options(options, static_cast<std::int32_t>(sequences.size()));
  PoolPlan plan;
  plan.options = options;
  plan.sequences = std::move(sequences);
  plan.layout = make_home_layout(options, plan.sequences);
  plan.tiling = make_tiling(options, plan.layout, cost);
  plan.placement = place_tiles(options, plan.layout, plan.tiling, other_work);
  if (options.placer == PlacerKind::kBalanced && options.max_tile_pairs == 0) {
    cut_until_balanced(plan, cost, other_work);
  }
  if (!other_work.empty()) {
    plan.placement = with_destinations(plan.options, plan.layout, plan.tiling,
                                       std::move(plan.placement.destination));
  }
  plan.exchange = plan_exchange(plan.options, plan.layout, plan.tiling, plan.placement);
  return plan;
}

PoolPlan rebuild_plan(const PlanOptions& options, std::vector<PackedSequence> sequences,
                      const std::vector<std::int64_t>& block_costs,
                      std::vector<std::int32_t> destination) {
  check_options(options, static_cast<std::int32_t>(sequences.size()));
  PoolPlan plan;
  plan.options = options;
  plan.sequences = std::move(sequences);
  check_sequences(options, plan.sequences);
  require_readable_homes(options, plan.sequences);
  require_enough_costs(options, plan.sequences, block_costs.size());
  plan.layout = make_home_layout(options, plan.sequences);
  plan.tiling = make_tiling(options, plan.layout);
  require_readable_tiles(options, plan.tiling);
  if (block_costs.size() != plan.tiling.blocks.size()) {
    throw PlanError(
        fmt::format("{} costs for {} blocks", block_costs.size(), plan.tiling.blocks.size()));
  }
  require_possible_costs(block_costs, options.head_shards);
  for (std::size_t block = 0; block < block_costs.size(); ++block) {
    plan.tiling.blocks[block].cost = block_costs[block];
  }
  plan.placement = with_destinations(options, plan.layout, plan.tiling, std::move(destination));
  require_readable_fetches(options, plan.layout, plan.tiling, plan.placement);
  plan.exchange = plan_exchange(options, plan.layout, plan.tiling, plan.placement);
  return plan;
}

std::uint64_t plan_fingerprint(const PoolPlan& plan) {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view(kVersion));
  add_options(fingerprint, plan.options);
  add_runs(fingerprint, plan.options.explicit_runs);
  fingerprint.add(static_cast<std::int64_t>(plan.sequences.size()));
  for (const PackedSequence& sequence : plan.sequences) {
    fingerprint.add(sequence.tokens);
    fingerprint.add(sequence.sample_tokens);
  }
  for (const TokenPart& part : plan.layout.parts) add_runs(fingerprint, part.runs);
  for (const Block& block : plan.tiling.blocks) fingerprint.add(block.cost);
  fingerprint.add(plan.placement.destination);
  add_moves(fingerprint, plan.exchange.q_moves);
  add_moves(fingerprint, plan.exchange.kv_moves);
  add_moves(fingerprint, plan.exchange.kv_copies);
  return fingerprint.value();
}

}  // namespace libra
