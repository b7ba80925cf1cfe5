// The memory that a worker needs to run a plan, to the byte, known before it runs; and where in it
// everything lies.
//
//   arena    the transport's; what peers write to or read from. Two slots per tensor: chunk i
//            computes while chunk i + 1 arrives. Keys and their gradients have three where there
//            are relays: chunk i + 1 is passed on meanwhile, and chunk i + 2 arrives. Forward and
//            backward use the same bytes, one after the other.
//   saved    the caller's; lives from forward to backward. Empty with refetch, or if nothing was
//            fetched.
//   scratch  the caller's; lives during backward only.
//
// Offsets are a function of the plan alone, so that a peer knows where to write without asking.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/plan/pool_plan.h"

namespace libra {

/// A dense [slots][rows, heads, dim] tensor at a byte offset; every slot starts at a multiple of
/// 256 bytes.
struct Region {
  std::int64_t offset = 0;
  std::int64_t slot_bytes = 0;
  std::int64_t row_bytes = 0;
  std::int64_t rows = 0;
  std::int32_t slots = 0;

  std::int64_t slot(std::int32_t index) const { return offset + index % slots * slot_bytes; }
  std::int64_t row(std::int32_t index, std::int64_t row_idx) const {
    return slot(index) + row_idx * row_bytes;
  }
};

/// What arrives for, or leaves, foreign tiles and fetched groups. Slot of chunk m: m, or its KV
/// chunk.
struct ArenaLayout {
  Region q, k, v, o, lse;  ///< forward, and backward with refetch
  Region d_o, dq;          ///< backward; dq in storage dtype
  Region dk, dv;           ///< accumulation dtype, of fetched keys, on their way home
  /// Accumulation dtype, at home, of keys that others fetched: in kv_moves order, a slot per KV
  /// chunk.
  Region dk_home, dv_home;
  Region dk_relay, dv_relay;  ///< likewise, at a relay: of keys passed on; with the slots of dk
  std::int64_t bytes = 0;
};

/// With keep: one slot per chunk (q, o, lse) or KV chunk (k, v).
struct SavedLayout {
  Region q, k, v, o, lse;
  std::int64_t bytes = 0;
};

/// Accumulators. dq_arena: of one chunk of foreign queries; the others: of the worker's own rows
/// and heads.
struct ScratchLayout {
  Region dq_arena, dq, dk, dv;
  std::int64_t bytes = 0;
};

struct WorkerMemory {
  ArenaLayout arena;
  SavedLayout saved;
  ScratchLayout scratch;
  std::int64_t bytes() const { return arena.bytes + saved.bytes + scratch.bytes; }
};

/// By worker. Linear in workers and KV moves.
std::vector<WorkerMemory> plan_memory(const PoolPlan& plan);

/// Arena bytes that every worker of the pool must reserve before running the plan.
std::int64_t max_arena_bytes(const PoolPlan& plan);

/// The largest bytes() over the workers.
std::int64_t max_memory_bytes(const PoolPlan& plan);

/// A plan whose extra memory stays within `cap_bytes` on every worker: with more chunks, then with
/// refetch, if the options as given need more. Throws ConfigError that states the least that would
/// do if nothing fits.
PoolPlan make_plan_within(const PlanOptions& options, const std::vector<PackedSequence>& sequences,
                          std::int64_t cap_bytes, const PieceCost& cost = flops_cost);

}  // namespace libra
