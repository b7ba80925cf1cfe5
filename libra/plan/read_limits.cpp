#include "libra/plan/read_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/kv_groups.h"

namespace libra {
namespace {

void require_few(std::string_view what, double count) {
  if (count <= static_cast<double>(kMaxReadItems)) return;
  throw PlanError(fmt::format("the plan has {:.3g} {}: plans of up to {} are read", count, what,
                              kMaxReadItems));
}

std::size_t runs_of(const PlanOptions& options) {
  std::size_t runs = 0;
  for (const auto& parts : options.explicit_runs) {
    for (const auto& of_part : parts) runs += of_part.size();
  }
  return runs;
}

}  // namespace

// Each run's end may cut a sample; a zigzag of documents cuts every one, and so do tiles that must
// be small.
void require_readable_homes(const PlanOptions& options, std::span<const PackedSequence> sequences) {
  constexpr double kLeastCutRows = 128;
  const double chunks = 2.0 * options.cp / options.tp;
  double fragments = static_cast<double>(runs_of(options));
  for (const PackedSequence& sequence : sequences) {
    const auto samples = static_cast<double>(sequence.sample_tokens.size());
    const bool every_sample = options.home == HomeKind::kZigzagDocument;
    fragments += samples + (every_sample ? samples + 1 : 1) * chunks;
    if (options.max_tile_pairs > 0) {
      fragments += static_cast<double>(sequence.tokens) / kLeastCutRows;
    }
  }
  require_few("fragments of samples", fragments);
}

void require_readable_tiles(const PlanOptions& options, const Tiling& tiling) {
  require_few("pieces of samples in its tiles",
              static_cast<double>(tiling.pieces.size()) * options.head_shards);
}

void require_readable_fetches(const PlanOptions& options, const HomeLayout& layout,
                              const Tiling& tiling, const Placement& placement) {
  const KvGroups groups(options, layout);
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> fetched;
  for (std::int32_t tile = 0; tile < tiling.tiles(); ++tile) {
    const std::int32_t worker = placement.destination[at(tile)];
    const std::int32_t kv_shard = groups.kv_shard(tiling.shard_of(tile));
    for (const Piece& piece : tiling.pieces_of(tiling.block_of(tile))) {
      fetched.emplace_back(worker, kv_shard, piece.sample);
    }
  }
  std::sort(fetched.begin(), fetched.end());
  fetched.erase(std::unique(fetched.begin(), fetched.end()), fetched.end());
  double fragments = 0;
  for (const auto& [worker, kv_shard, sample] : fetched) {
    fragments += static_cast<double>(layout.fragments_of(sample).size());
  }
  require_few("fragments of fetched keys", fragments);
}

}  // namespace libra
