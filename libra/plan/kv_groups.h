// Which keys a piece needs at a destination, and which of them are there already. Placers and
// exchange planner share these rules, so that what a placer charges for is what is sent.
//
// A KV group is the keys and values of one sample and one KV shard. A worker holds the part of it
// that it is home of; the rest must be fetched. A piece is local if all it needs lies in
// consecutive rows of the worker's own K and V.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/head_split.h"
#include "libra/plan/home_layout.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"

namespace libra {

class KvGroups {
 public:
  KvGroups(const PlanOptions& options, const HomeLayout& layout)
      : layout_(&layout),
        split_(options.shape, options.head_shards, options.chunks),
        fetch_(options.fetch),
        shards_per_home_(options.head_shards / options.tp) {}

  std::int32_t kv_shard(std::int32_t shard) const { return split_.kv_shard_of(shard); }
  std::int32_t count() const {
    return static_cast<std::int32_t>(layout_->samples.size()) * split_.kv_shards;
  }
  std::int32_t index(std::int32_t sample, std::int32_t shard) const {
    return sample * split_.kv_shards + kv_shard(shard);
  }
  std::int32_t sample_of(std::int32_t group) const { return group / split_.kv_shards; }
  std::int32_t kv_shard_of_group(std::int32_t group) const { return group % split_.kv_shards; }

  /// Which of a part's tp workers holds the heads of `shard`, query and KV alike.
  std::int32_t head_part(std::int32_t shard) const { return shard / shards_per_home_; }
  std::int32_t head_part_of_kv_shard(std::int32_t kv_shard) const {
    return kv_shard * layout_->tp / split_.kv_shards;
  }

  /// Keys [0, n) of the sample must be at hand where the piece is computed; this is n.
  std::int64_t needed(const Piece& piece) const {
    return fetch_ == Fetch::kWhole ? layout_->samples[static_cast<std::size_t>(piece.sample)].tokens
                                   : piece.queries.end;
  }

  /// Whether `worker` holds keys [0, needed) of the sample in consecutive rows of its own K and V.
  bool local(std::int32_t sample, std::int64_t needed, std::int32_t shard,
             std::int32_t worker) const {
    const Fragment& first = layout_->fragments_of(sample).front();
    return first.tokens.end >= needed && first.part * layout_->tp + head_part(shard) == worker;
  }

  const HeadSplit& split() const { return split_; }

 private:
  const HomeLayout* layout_;
  HeadSplit split_;
  Fetch fetch_;
  std::int32_t shards_per_home_;
};

}  // namespace libra
