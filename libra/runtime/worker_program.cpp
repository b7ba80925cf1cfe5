#include "libra/runtime/worker_program.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "libra/base/check.h"
#include "libra/base/index.h"
#include "libra/plan/kv_groups.h"

namespace libra {
namespace {

// One piece of a tile assigned to the worker, with everything resolved to rows and heads of actual
// tensors.
struct Work {
  std::int32_t shard = 0;
  std::int32_t sample = 0;
  TokenRange queries;
  std::int64_t q_row = 0;
  std::int64_t kv_row = 0;  // of the sample's first key
  std::int32_t q_head = 0;
  std::int32_t kv_head = 0;
};

using WorkByGroup = std::array<std::vector<Work>, 4>;  // index: q_in_arena * 2 + kv_in_arena

// Whether b goes on where a ends, in the sample and in the query tensor alike. Of one sample and
// shard, all work of a group has its keys in the same place.
bool continues(const Work& a, const Work& b) {
  return a.shard == b.shard && a.sample == b.sample && a.queries.end == b.queries.begin &&
         a.q_row + a.queries.size() == b.q_row;
}

// Pieces of neighbouring blocks of one sample become one entry: fewer, longer entries over the same
// pairs.
std::vector<Work> merged(std::vector<Work> work) {
  std::sort(work.begin(), work.end(), [](const Work& a, const Work& b) {
    return std::tie(a.shard, a.sample, a.queries.begin) <
           std::tie(b.shard, b.sample, b.queries.begin);
  });
  std::vector<Work> result;
  for (const Work& next : work) {
    if (!result.empty() && continues(result.back(), next)) {
      result.back().queries.end = next.queries.end;
    } else {
      result.push_back(next);
    }
  }
  return result;
}

std::int64_t pairs_of(const Entry& entry) {
  return entry.mask == Mask::kFull ? entry.queries * entry.keys
                                   : query_key_pairs({entry.keys - entry.queries, entry.keys});
}

void longest_first(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return pairs_of(a) > pairs_of(b); });
}

Entry entry_of(const Work& work, TokenRange keys, Mask mask) {
  return {work.q_row,  work.queries.size(), work.kv_row + keys.begin,
          keys.size(), work.q_head,         work.kv_head,
          mask};
}

void fill_forward(const std::vector<Work>& work, std::vector<Entry>& entries) {
  for (const Work& item : work) {
    const bool from_start = item.queries.begin == 0;
    entries.push_back(entry_of(item, {0, item.queries.end},
                               from_start ? Mask::kTopLeftCausal : Mask::kBottomRightCausal));
  }
  longest_first(entries);
}

void fill_backward(const std::vector<Work>& work, std::vector<Entry>& entries) {
  for (const Work& item : work) {
    const TokenRange before{0, item.queries.begin};
    entries.push_back(entry_of(item, item.queries, Mask::kTopLeftCausal));
    if (!before.empty()) entries.push_back(entry_of(item, before, Mask::kFull));
  }
  longest_first(entries);
}

// The rows of [0, rows) that none of `ranges` covers. Requires ranges in row order.
std::vector<TokenRange> gaps(const std::vector<TokenRange>& ranges, std::int64_t rows) {
  std::vector<TokenRange> result;
  std::int64_t next = 0;
  for (const TokenRange range : ranges) {
    if (range.begin > next) result.push_back({next, range.begin});
    next = range.end;
  }
  if (next < rows) result.push_back({next, rows});
  return result;
}

// Of one part, in row order.
std::vector<Fragment> fragments_of_part(const HomeLayout& layout, std::int32_t part) {
  std::vector<Fragment> result;
  std::copy_if(layout.fragments.begin(), layout.fragments.end(), std::back_inserter(result),
               [part](const Fragment& fragment) { return fragment.part == part; });
  std::sort(result.begin(), result.end(),
            [](const Fragment& a, const Fragment& b) { return a.row < b.row; });
  return result;
}

class ProgramMaker {
 public:
  ProgramMaker(const PoolPlan& plan, std::int32_t worker, const WholeLimits& limits)
      : plan_(plan),
        limits_(limits),
        groups_(plan.options, plan.layout),
        heads_(plan.heads()),
        fragments_(fragments_of_part(plan.layout, worker / plan.options.tp)) {
    const AttentionShape& shape = plan.options.shape;
    const std::int32_t head_part = worker % plan.options.tp;
    program_.worker = worker;
    program_.rows = plan.layout.part_of(worker).rows;
    program_.q_heads = shape.q_heads / plan.options.tp;
    program_.kv_heads = shape.kv_heads / plan.options.tp;
    program_.first_q_head = head_part * program_.q_heads;
    program_.first_kv_head = head_part * program_.kv_heads;
  }

  WorkerProgram run() {
    WorkByGroup work;
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile) {
      if (plan_.placement.destination[at(tile)] == program_.worker) add_tile(tile, work);
    }
    for (std::size_t kind = 0; kind < work.size(); ++kind)
      add_group(kind, std::move(work.at(kind)));
    join_computed_here();
    find_padding();
    program_.summed_rows = gaps(program_.whole_rows, program_.rows);
    split_moves(plan_.exchange.q_moves, 0, program_.q_out, program_.q_in);
    split_moves(plan_.exchange.kv_moves, 0, program_.kv_out, program_.kv_in);
    split_moves(plan_.exchange.kv_moves, 1, program_.relay_out, program_.relay_in);
    program_.has_relays = has_relays(plan_.exchange);
    for (const RowMove& copy : plan_.exchange.kv_copies) {
      if (copy.to == program_.worker) program_.kv_copies.push_back(copy);
    }
    return std::move(program_);
  }

 private:
  void add_tile(std::int32_t tile, WorkByGroup& work) {
    const Block& block = plan_.tiling.block_of(tile);
    const std::int32_t shard = plan_.tiling.shard_of(tile);
    std::int64_t arena_row = plan_.exchange.tile_arena_row[at(tile)];
    const bool foreign = arena_row >= 0;
    for (const Piece& piece : plan_.tiling.pieces_of(block)) {
      Work item{shard, piece.sample, piece.queries, foreign ? arena_row : piece.row, 0, 0, 0};
      if (!foreign) item.q_head = shard * heads_.shard_heads - program_.first_q_head;
      const bool fetched = place_keys(piece, shard, item);
      work.at((foreign ? 2U : 0U) + (fetched ? 1U : 0U)).push_back(item);
      if (foreign) arena_row += piece.queries.size();
      if (!foreign) {
        program_.computed_here.push_back(
            {item.q_row, item.queries.size(), item.q_head, heads_.shard_heads});
      }
    }
  }

  // Finds the keys of a piece; true if they are in the arena.
  bool place_keys(const Piece& piece, std::int32_t shard, Work& item) const {
    const std::int32_t kv_shard = groups_.kv_shard(shard);
    if (groups_.local(piece.sample, groups_.needed(piece), shard, program_.worker)) {
      item.kv_row = plan_.layout.fragments_of(piece.sample).front().row;
      item.kv_head = kv_shard * heads_.kv_shard_heads - program_.first_kv_head;
      return false;
    }
    const KvFetch* fetch = find_fetch(plan_.exchange, program_.worker, kv_shard, piece.sample);
    LIBRA_CHECK(fetch != nullptr, "sample {} has no keys at worker {}", piece.sample,
                program_.worker);
    item.kv_row = fetch->arena_row;
    return true;
  }

  // Own queries that stay, shard by shard; neighbouring pieces joined.
  void join_computed_here() {
    std::vector<OwnBlock> blocks = std::move(program_.computed_here);
    std::sort(blocks.begin(), blocks.end(), [](const OwnBlock& a, const OwnBlock& b) {
      return std::tie(a.q_head, a.row) < std::tie(b.q_head, b.row);
    });
    program_.computed_here.clear();
    for (const OwnBlock& next : blocks) {
      std::vector<OwnBlock>& joined = program_.computed_here;
      if (!joined.empty() && joined.back().q_head == next.q_head &&
          joined.back().row + joined.back().rows == next.row) {
        joined.back().rows += next.rows;
      } else {
        joined.push_back(next);
      }
    }
  }

  void add_group(std::size_t kind, std::vector<Work> work) {
    if (work.empty()) return;
    const bool local = kind == 0 && plan_.options.local_first;
    EntryGroup group{kind >= 2, kind % 2 == 1, {}, {}};
    std::vector<Work> items = merged(std::move(work));
    fill_forward(items, group.forward);
    if (local) take_whole(items);
    fill_backward(items, group.backward);
    if (local) {
      program_.local = std::move(group);
    } else {
      program_.chunked.push_back(std::move(group));
    }
  }

  // Moves the whole samples from the items of the local class into the program.
  void take_whole(std::vector<Work>& items) {
    WholeSamples whole = find_whole_samples(plan_.layout, fragments_, stayed(items), limits_);
    std::erase_if(items, [&](const Work& item) { return whole.contains[at(item.sample)]; });
    longest_first(whole.entries);
    program_.whole = std::move(whole.entries);
    program_.whole_rows = std::move(whole.rows);
  }

  // By sample, whether all its queries are local, in each of the worker's shards.
  std::vector<bool> stayed(const std::vector<Work>& items) const {
    std::vector<std::int64_t> queries(plan_.layout.samples.size());
    for (const Work& item : items) queries[at(item.sample)] += item.queries.size();
    std::vector<bool> result(queries.size());
    for (std::size_t sample = 0; sample < queries.size(); ++sample) {
      const std::int64_t tokens = plan_.layout.samples[sample].tokens;
      result[sample] = queries[sample] == tokens * plan_.tiling.shards_per_home;
    }
    return result;
  }

  // Own rows between the fragments of the worker's part.
  void find_padding() {
    std::vector<TokenRange> used;
    used.reserve(fragments_.size());
    for (const Fragment& fragment : fragments_) {
      used.push_back({fragment.row, fragment.row + fragment.tokens.size()});
    }
    program_.padding = gaps(used, program_.rows);
  }

  void split_moves(const std::vector<RowMove>& moves, std::int32_t round, std::vector<RowMove>& out,
                   std::vector<RowMove>& in) const {
    for (const RowMove& move : moves) {
      if (move.round != round) continue;
      if (move.from == program_.worker) out.push_back(move);
      if (move.to == program_.worker) in.push_back(move);
    }
  }

  const PoolPlan& plan_;
  WholeLimits limits_;
  KvGroups groups_;
  HeadSplit heads_;
  std::vector<Fragment> fragments_;  // of the worker's part, in row order
  WorkerProgram program_;
};

}  // namespace

WorkerProgram make_worker_program(const PoolPlan& plan, std::int32_t worker,
                                  const WholeLimits& limits) {
  LIBRA_CHECK(worker >= 0 && worker < plan.workers(), "worker {} of {}", worker, plan.workers());
  return ProgramMaker(plan, worker, limits).run();
}

}  // namespace libra
