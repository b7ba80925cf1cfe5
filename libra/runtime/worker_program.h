// What one worker computes, sends and receives under a plan: the plan turned from the pool's point
// of view to the worker's. Pure data, made once per plan, used by every layer's forward and
// backward.
//
// Attention calls differ in where they find their tensors, since in one call each tensor has one
// base:
//
//                     keys in own K, V           keys in the KV arena
//   own queries       local (class L)            chunked
//   foreign queries   chunked                    chunked
//
// Entries name rows and heads for chunk 0; chunk m is the same list with heads shifted
// (AttentionCall).
//
// Backward, samples that the worker computes as a whole (whole_samples.h) make up a call of their
// own, of all own heads: it may write their gradients, where the other calls add to sums.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/plan/pool_plan.h"
#include "libra/runtime/whole_samples.h"

namespace libra {

/// Entries that share their tensors. Forward: queries [a, e) against keys [0, e). Backward: the
/// top-left square over [a, e) and the full rectangle over [0, a), which any backend runs as fast
/// as the whole sample. Longest first.
struct EntryGroup {
  bool q_in_arena = false;
  bool kv_in_arena = false;
  std::vector<Entry> forward;
  std::vector<Entry> backward;
};

/// Rows of the worker's own tensors, for some of its query heads.
struct OwnBlock {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int32_t q_head = 0;
  std::int32_t heads = 0;
};

struct WorkerProgram {
  std::int32_t worker = 0;
  std::int64_t rows = 0;          ///< of the worker's own tensors, padding among them
  std::int32_t q_heads = 0;       ///< heads of its own Q
  std::int32_t kv_heads = 0;      ///< heads of its own K and V
  std::int32_t first_q_head = 0;  ///< its first query head in the model
  std::int32_t first_kv_head = 0;

  EntryGroup local;  ///< needs no exchange; whole shards; empty unless the plan says local_first
  std::vector<Entry> whole;             ///< backward, what of `local` is no part of local.backward
  std::vector<EntryGroup> chunked;      ///< run once per chunk
  std::vector<OwnBlock> computed_here;  ///< own queries whose tiles stayed at home
  std::vector<TokenRange> padding;      ///< own rows that belong to no sample
  std::vector<TokenRange> whole_rows;   ///< of the samples in `whole`, neighbours joined
  std::vector<TokenRange> summed_rows;  ///< all other own rows, padding among them

  // The worker's share of the plan's moves, in the plan's order, which both ends follow.
  std::vector<RowMove> q_out, q_in;    ///< own Q that leaves; foreign Q that arrives
  std::vector<RowMove> kv_out, kv_in;  ///< round 0
  /// Round 1: fetched keys that this worker passes on; keys that it gets from relays.
  std::vector<RowMove> relay_out, relay_in;
  bool has_relays = false;  ///< anywhere in the pool: all workers exchange in the same order
  std::vector<RowMove> kv_copies;
};

/// Requires 0 <= worker < plan.workers(). Linear in the plan, plus sorts of what is the worker's.
WorkerProgram make_worker_program(const PoolPlan& plan, std::int32_t worker,
                                  const WholeLimits& limits = {});

}  // namespace libra
