#include "libra/plan/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/units.h"
#include "libra/cost/bytes.h"

namespace libra {
namespace {

// Lays regions out one after the other.
class Allocator {
 public:
  explicit Allocator(std::int64_t begin = 0) : end_(begin) {}

  Region add(std::int32_t slots, std::int64_t rows, std::int64_t row_bytes) {
    constexpr std::int64_t kAlignment = 256;
    const std::int64_t slot_bytes = (rows * row_bytes + kAlignment - 1) / kAlignment * kAlignment;
    const Region region{end_, slot_bytes, row_bytes, rows, slots};
    end_ += slots * slot_bytes;
    return region;
  }

  std::int64_t end() const { return end_; }

 private:
  std::int64_t end_;
};

// Rows of keys that leave a worker, by worker.
struct Lent {
  std::vector<std::int64_t> own_rows;
  std::vector<std::int64_t> relayed_rows;
  bool has_relays = false;

  explicit Lent(const PoolPlan& plan)
      : own_rows(at(plan.workers()), 0), relayed_rows(at(plan.workers()), 0) {
    for (const RowMove& move : plan.exchange.kv_moves) {
      (move.round == 0 ? own_rows : relayed_rows)[at(move.from)] += move.rows;
      has_relays = has_relays || move.round > 0;
    }
  }
};

// The sizes that all regions are made of.
struct Sizes {
  HeadSplit heads;
  AttentionShape shape;
  DType storage;
  std::int64_t q_rows;
  std::int64_t kv_rows;
  std::int64_t lent_rows;     // rows of own keys that others fetch, once per fetch
  std::int64_t relayed_rows;  // rows of fetched keys that are passed on, likewise
  std::int64_t own_rows;
  std::int32_t tp;
  std::int32_t kv_slots;

  Sizes(const PoolPlan& plan, std::int32_t worker, const Lent& lent)
      : heads(plan.heads()),
        shape(plan.options.shape),
        storage(plan.options.storage),
        q_rows(plan.exchange.q_arena_rows[at(worker)]),
        kv_rows(plan.exchange.kv_arena_rows[at(worker)]),
        lent_rows(lent.own_rows[at(worker)]),
        relayed_rows(lent.relayed_rows[at(worker)]),
        own_rows(plan.layout.part_of(worker).rows),
        tp(plan.options.tp),
        kv_slots(std::min(lent.has_relays ? 3 : 2, heads.kv_chunks)) {}
};

// Q, K, V, O and LSE of chunks, with this many slots each: the arena's first part, and all that is
// saved.
template <typename Layout>
void add_chunk_tensors(Layout& layout, Allocator& memory, const Sizes& s, std::int32_t q_slots,
                       std::int32_t kv_slots) {
  layout.q = memory.add(q_slots, s.q_rows, q_token_bytes(s.shape, s.heads.chunk_heads, s.storage));
  layout.k =
      memory.add(kv_slots, s.kv_rows, k_token_bytes(s.shape, s.heads.kv_chunk_heads, s.storage));
  layout.v =
      memory.add(kv_slots, s.kv_rows, v_token_bytes(s.shape, s.heads.kv_chunk_heads, s.storage));
  layout.o = memory.add(q_slots, s.q_rows, o_token_bytes(s.shape, s.heads.chunk_heads, s.storage));
  layout.lse = memory.add(q_slots, s.q_rows, lse_token_bytes(s.heads.chunk_heads, s.storage));
}

ArenaLayout arena_layout(const Sizes& s, const PlanOptions& options) {
  const std::int32_t q_slots = std::min(2, options.chunks);
  ArenaLayout arena;
  Allocator forward;
  add_chunk_tensors(arena, forward, s, q_slots, s.kv_slots);
  Allocator backward(options.backward == BackwardMode::kRefetch ? forward.end() : 0);
  const std::int64_t k_row = dk_token_bytes(s.shape, s.heads.kv_chunk_heads, s.storage);
  const std::int64_t v_row = dv_token_bytes(s.shape, s.heads.kv_chunk_heads, s.storage);
  arena.d_o =
      backward.add(q_slots, s.q_rows, o_token_bytes(s.shape, s.heads.chunk_heads, s.storage));
  arena.dq =
      backward.add(q_slots, s.q_rows, q_token_bytes(s.shape, s.heads.chunk_heads, s.storage));
  arena.dk = backward.add(s.kv_slots, s.kv_rows, k_row);
  arena.dv = backward.add(s.kv_slots, s.kv_rows, v_row);
  // A slot per KV chunk: what others computed comes home whenever it is ready.
  arena.dk_home = backward.add(s.heads.kv_chunks, s.lent_rows, k_row);
  arena.dv_home = backward.add(s.heads.kv_chunks, s.lent_rows, v_row);
  arena.dk_relay = backward.add(s.kv_slots, s.relayed_rows, k_row);
  arena.dv_relay = backward.add(s.kv_slots, s.relayed_rows, v_row);
  arena.bytes = std::max(forward.end(), backward.end());
  return arena;
}

SavedLayout saved_layout(const Sizes& s, const PlanOptions& options) {
  SavedLayout saved;
  if (options.backward == BackwardMode::kRefetch) return saved;
  Allocator memory;
  add_chunk_tensors(saved, memory, s, options.chunks, s.heads.kv_chunks);
  saved.bytes = memory.end();
  return saved;
}

ScratchLayout scratch_layout(const Sizes& s) {
  const DType accumulated = accumulation_dtype(s.storage);
  const std::int64_t q_heads = s.shape.q_heads / s.tp;
  const std::int64_t kv_heads = s.shape.kv_heads / s.tp;
  ScratchLayout scratch;
  Allocator memory;
  scratch.dq_arena =
      memory.add(1, s.q_rows, q_token_bytes(s.shape, s.heads.chunk_heads, accumulated));
  scratch.dq = memory.add(1, s.own_rows, q_token_bytes(s.shape, q_heads, accumulated));
  scratch.dk = memory.add(1, s.own_rows, dk_token_bytes(s.shape, kv_heads, s.storage));
  scratch.dv = memory.add(1, s.own_rows, dv_token_bytes(s.shape, kv_heads, s.storage));
  scratch.bytes = memory.end();
  return scratch;
}

}  // namespace

std::vector<WorkerMemory> plan_memory(const PoolPlan& plan) {
  const Lent lent(plan);
  std::vector<WorkerMemory> memories;
  memories.reserve(at(plan.workers()));
  for (std::int32_t worker = 0; worker < plan.workers(); ++worker) {
    const Sizes sizes(plan, worker, lent);
    memories.push_back({arena_layout(sizes, plan.options), saved_layout(sizes, plan.options),
                        scratch_layout(sizes)});
  }
  return memories;
}

std::int64_t max_arena_bytes(const PoolPlan& plan) {
  std::int64_t bytes = 0;
  for (const WorkerMemory& memory : plan_memory(plan)) bytes = std::max(bytes, memory.arena.bytes);
  return bytes;
}

std::int64_t max_memory_bytes(const PoolPlan& plan) {
  std::int64_t bytes = 0;
  for (const WorkerMemory& memory : plan_memory(plan)) bytes = std::max(bytes, memory.bytes());
  return bytes;
}

// Chunks and backward mode decide about memory only: placement and exchange stay as they are.
PoolPlan make_plan_within(const PlanOptions& options, const std::vector<PackedSequence>& sequences,
                          std::int64_t cap_bytes, const PieceCost& cost) {
  PoolPlan plan = make_plan(options, sequences, cost);
  const std::int64_t as_given = max_memory_bytes(plan);
  const std::int32_t shard_heads = options.shape.q_heads / options.head_shards;
  std::int64_t least = as_given;
  for (const BackwardMode mode : {options.backward, BackwardMode::kRefetch}) {
    plan.options.backward = mode;
    for (std::int32_t chunks = options.chunks; chunks <= shard_heads; ++chunks) {
      if (largest_legal_chunks(options.shape, options.head_shards, chunks) != chunks) continue;
      plan.options.chunks = chunks;
      const std::int64_t bytes = max_memory_bytes(plan);
      if (bytes <= cap_bytes) return plan;
      least = std::min(least, bytes);
    }
  }
  throw ConfigError(
      fmt::format("the plan needs {} beyond the inputs on its fullest worker, the cap is {}: "
                  "the least that any chunk count and backward mode needs is {} ({} bytes)",
                  format_bytes(as_given), format_bytes(cap_bytes), format_bytes(least), least));
}

}  // namespace libra
