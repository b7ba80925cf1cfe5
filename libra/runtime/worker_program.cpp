#include "libra/runtime/worker_program.h"

#include <algorithm>
#include <array>
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

void fill_group(EntryGroup& group, std::vector<Work> work) {
  for (const Work& item : merged(std::move(work))) {
    const TokenRange before{0, item.queries.begin};
    const TokenRange upto{0, item.queries.end};
    group.forward.push_back(
        entry_of(item, upto, before.empty() ? Mask::kTopLeftCausal : Mask::kBottomRightCausal));
    group.backward.push_back(entry_of(item, item.queries, Mask::kTopLeftCausal));
    if (!before.empty()) group.backward.push_back(entry_of(item, before, Mask::kFull));
  }
  longest_first(group.forward);
  longest_first(group.backward);
}

class ProgramMaker {
 public:
  ProgramMaker(const PoolPlan& plan, std::int32_t worker)
      : plan_(plan), groups_(plan.options, plan.layout), heads_(plan.heads()) {
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
    EntryGroup group{kind >= 2, kind % 2 == 1, {}, {}};
    fill_group(group, std::move(work));
    if (kind == 0 && plan_.options.local_first) {
      program_.local = std::move(group);
    } else {
      program_.chunked.push_back(std::move(group));
    }
  }

  // Own rows between the fragments of the worker's part.
  void find_padding() {
    std::vector<TokenRange> used;
    for (const Fragment& fragment : plan_.layout.fragments) {
      if (fragment.part == program_.worker / plan_.options.tp) {
        used.push_back({fragment.row, fragment.row + fragment.tokens.size()});
      }
    }
    std::sort(used.begin(), used.end(),
              [](TokenRange a, TokenRange b) { return a.begin < b.begin; });
    std::int64_t next = 0;
    for (const TokenRange rows : used) {
      if (rows.begin > next) program_.padding.push_back({next, rows.begin});
      next = rows.end;
    }
    if (next < program_.rows) program_.padding.push_back({next, program_.rows});
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
  KvGroups groups_;
  HeadSplit heads_;
  WorkerProgram program_;
};

}  // namespace

WorkerProgram make_worker_program(const PoolPlan& plan, std::int32_t worker) {
  LIBRA_CHECK(worker >= 0 && worker < plan.workers(), "worker {} of {}", worker, plan.workers());
  return ProgramMaker(plan, worker).run();
}

}  // namespace libra
