#include "libra/sim/plan_times.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "libra/base/index.h"
#include "libra/cost/bytes.h"
#include "libra/plan/kv_groups.h"
#include "libra/plan/memory_plan.h"
#include "libra/plan/traffic.h"
#include "libra/sim/call_pair.h"
#include "libra/sim/overlap.h"

namespace libra {
namespace {

/// What a worker computes: once, and once per chunk.
struct WorkerCalls {
  CallPair local;
  CallPair chunk;
};

// Forward: a block's entries for one head shard that is computed at home.
struct HomeCalls {
  CallTime local;  // whole shards
  CallTime rest;   // chunks
};

// All shards of a block are alike. Made when first asked for, as most blocks stay at home.
struct BlockCalls {
  std::optional<HomeCalls> home;
  std::optional<CallTime> away;  // chunks
};

// Backward: the pieces of one sample that one worker computes side by side for one head shard. A
// backend runs them as one piece, which is faster.
class JoinedPieces {
 public:
  explicit JoinedPieces(const DeviceProfile& device) : device_(&device) {}

  void add(const Piece& piece, std::int32_t heads, CallPair& call) {
    if (call_ == &call && sample_ == piece.sample && queries_.end == piece.queries.begin) {
      queries_.end = piece.queries.end;
      return;
    }
    flush();
    call_ = &call;
    sample_ = piece.sample;
    queries_ = piece.queries;
    heads_ = heads;
  }

  void flush() {
    if (call_ == nullptr) return;
    call_->backward.add(device_->backward_entry(queries_, heads_));
    call_->work += query_key_pairs(queries_) * heads_;
  }

 private:
  const DeviceProfile* device_;
  CallPair* call_ = nullptr;
  std::int32_t sample_ = 0;
  TokenRange queries_;
  std::int32_t heads_ = 0;
};

class CallCounter {
 public:
  CallCounter(const Environment& environment, const PoolPlan& plan)
      : device_(environment.device()),
        plan_(plan),
        heads_(plan.heads()),
        groups_(plan.options, plan.layout),
        blocks_(plan.tiling.blocks.size()),
        joined_(at(plan.tiling.head_shards), JoinedPieces(device_)) {}

  std::vector<WorkerCalls> by_worker() {
    std::vector<WorkerCalls> calls(at(plan_.workers()));
    for (std::int32_t tile = 0; tile < plan_.tiling.tiles(); ++tile) {
      WorkerCalls& worker = calls[at(plan_.placement.destination[at(tile)])];
      add_forward(tile, worker);
      add_backward(tile, worker);
    }
    for (JoinedPieces& pieces : joined_) pieces.flush();
    return calls;
  }

 private:
  bool is_at_home(std::int32_t tile) const {
    return plan_.placement.destination[at(tile)] == plan_.tiling.home_of(tile);
  }

  // Whether the home computes the piece in its own tensors.
  bool is_local(std::int32_t tile, const Piece& piece) const {
    return groups_.local(piece.sample, groups_.needed(piece), plan_.tiling.shard_of(tile),
                         plan_.tiling.home_of(tile));
  }

  void add_forward(std::int32_t tile, WorkerCalls& worker) {
    BlockCalls& block = blocks_[at(tile / plan_.tiling.head_shards)];
    if (plan_.options.local_first && is_at_home(tile)) {
      if (!block.home) block.home = home_calls(tile);
      worker.local.forward.add(block.home->local);
      worker.chunk.forward.add(block.home->rest);
    } else {
      if (!block.away) block.away = away_calls(tile);
      worker.chunk.forward.add(*block.away);
    }
  }

  void add_backward(std::int32_t tile, WorkerCalls& worker) {
    JoinedPieces& joined = joined_[at(plan_.tiling.shard_of(tile))];
    const bool may_be_local = plan_.options.local_first && is_at_home(tile);
    for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
      if (may_be_local && is_local(tile, piece)) {
        joined.add(piece, heads_.shard_heads, worker.local);
      } else {
        joined.add(piece, heads_.chunk_heads, worker.chunk);
      }
    }
  }

  HomeCalls home_calls(std::int32_t tile) const {
    HomeCalls calls;
    for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
      if (is_local(tile, piece)) {
        calls.local.add(device_.forward_entry(piece.queries, heads_.shard_heads));
      } else {
        calls.rest.add(device_.forward_entry(piece.queries, heads_.chunk_heads));
      }
    }
    return calls;
  }

  CallTime away_calls(std::int32_t tile) const {
    CallTime call;
    for (const Piece& piece : plan_.tiling.pieces_of(plan_.tiling.block_of(tile))) {
      call.add(device_.forward_entry(piece.queries, heads_.chunk_heads));
    }
    return call;
  }

  const DeviceProfile& device_;
  const PoolPlan& plan_;
  HeadSplit heads_;
  KvGroups groups_;
  std::vector<BlockCalls> blocks_;
  std::vector<JoinedPieces> joined_;  // by head shard
};

FlowTable flow_table(const Environment& environment, const PoolPlan& plan, std::int64_t first_gpu) {
  FlowTable flows(plan.workers(), environment.scenario().cluster, first_gpu);
  for (const RowMove& move : plan.exchange.q_moves) flows.add(move.from, move.to, move.rows, 0);
  for (const RowMove& move : plan.exchange.kv_moves) {
    const bool relayed = move.round > 0;
    flows.add(move.from, move.to, 0, relayed ? 0 : move.rows, relayed ? move.rows : 0);
  }
  flows.finish();
  return flows;
}

// What is under way in one phase of overlap.h: the second step hangs on what the first brings.
struct PhaseBytes {
  RowBytes first;
  RowBytes then;
};

// What a pass sends per chunk: along the moves before it is computed, against them after. With
// relays as chunked_pass.h has it: keys one KV chunk ahead, then passed on; shares of gradients,
// then their sums.
class ChunkBytes {
 public:
  ChunkBytes(const PoolPlan& plan, bool backward)
      : heads_(plan.heads()), chunks_(plan.options.chunks), relays_(has_relays(plan.exchange)) {
    const AttentionShape& shape = plan.options.shape;
    const DType storage = plan.options.storage;
    const auto q = static_cast<double>(q_token_bytes(shape, heads_.shard_heads, storage));
    const auto o = static_cast<double>(o_token_bytes(shape, heads_.shard_heads, storage));
    const auto lse = static_cast<double>(lse_token_bytes(heads_.shard_heads, storage));
    const auto kv = static_cast<double>(kv_token_bytes(shape, heads_.kv_shard_heads, storage));
    const auto dkv = static_cast<double>(dkv_token_bytes(shape, heads_.kv_shard_heads, storage));
    const bool refetch = plan.options.backward == BackwardMode::kRefetch;
    if (backward) {
      row_ = {o + (refetch ? q + o + lse : 0), refetch ? kv : 0, q, dkv};
    } else {
      row_ = {q, kv, o + (plan.options.lse_goes_home() ? lse : 0), 0};
    }
    row_.relay_out = row_.kv_out;
    row_.relay_back = row_.kv_back;
  }

  RowBytes whole() const { return row_; }

  /// In each phase of overlap.h.
  std::vector<PhaseBytes> phases() const {
    std::vector<PhaseBytes> phases(at(chunks_) + 2);
    for (std::int32_t chunk = 0; chunk < chunks_; ++chunk) {
      phases[at(chunk)].first.q_out += row_.q_out / chunks_;
      phases[at(chunk) + 2].first.q_back += row_.q_back / chunks_;
    }
    for (std::int32_t kv_chunk = 0; kv_chunk < heads_.kv_chunks; ++kv_chunk) {
      relays_ ? add_relayed_keys(kv_chunk, phases) : add_keys(kv_chunk, phases);
    }
    return phases;
  }

 private:
  std::size_t first_chunk(std::int32_t kv_chunk) const {
    return at(kv_chunk * heads_.chunks_per_kv_chunk);
  }
  // When the results of the KV chunk's last chunk are under way.
  std::size_t return_phase(std::int32_t kv_chunk) const { return first_chunk(kv_chunk + 1) + 1; }

  void add_keys(std::int32_t kv_chunk, std::vector<PhaseBytes>& phases) const {
    phases[first_chunk(kv_chunk)].first.kv_out += row_.kv_out / heads_.kv_chunks;
    phases[return_phase(kv_chunk)].first.kv_back += row_.kv_back / heads_.kv_chunks;
  }

  // Keys are two KV chunks ahead at most; the first two are passed on as soon as they have come.
  void add_relayed_keys(std::int32_t kv_chunk, std::vector<PhaseBytes>& phases) const {
    const double parts = heads_.kv_chunks;
    const bool at_once = kv_chunk < 2;
    phases[first_chunk(at_once ? kv_chunk : kv_chunk - 1)].first.kv_out += row_.kv_out / parts;
    PhaseBytes& passed = phases[first_chunk(kv_chunk)];
    (at_once ? passed.then : passed.first).relay_out += row_.relay_out / parts;
    phases[return_phase(kv_chunk)].first.relay_back += row_.relay_back / parts;
    phases[return_phase(kv_chunk)].then.kv_back += row_.kv_back / parts;
  }

  HeadSplit heads_;
  std::int32_t chunks_;
  bool relays_;
  RowBytes row_;
};

// [phase][worker]
std::vector<std::vector<double>> exchange_seconds(const FlowTable& flows, const ChunkBytes& bytes) {
  std::vector<std::vector<double>> seconds;
  const std::vector<PhaseBytes> phases = bytes.phases();
  seconds.reserve(phases.size());
  for (const PhaseBytes& phase : phases) {
    seconds.push_back(flows.seconds(phase.first));
    if (phase.then.relay_out + phase.then.kv_back == 0) continue;
    seconds.back() = flows.seconds_after(std::move(seconds.back()), phase.then);
  }
  return seconds;
}

// One pass of every worker.
class PassTimer {
 public:
  PassTimer(const Environment& environment, const FlowTable& flows, const ChunkBytes& bytes)
      : environment_(environment), exchange_(exchange_seconds(flows, bytes)) {}

  /// `additions_ps`: of gradients.
  ChunkedPassTimes of(std::size_t worker, const CallTime& local, const CallTime& chunk,
                      std::int64_t additions_ps, double slowness) const {
    const DeviceProfile& device = environment_.device();
    ChunkedPassTimes pass;
    pass.local_s = environment_.seconds(local.total_ps(device)) * slowness;
    pass.chunk_compute_s = environment_.seconds(chunk.total_ps(device)) * slowness;
    pass.last_s = environment_.seconds(additions_ps) * slowness;
    pass.exchange_s.reserve(exchange_.size());
    for (const std::vector<double>& phase : exchange_) pass.exchange_s.push_back(phase[worker]);
    return pass;
  }

 private:
  const Environment& environment_;
  std::vector<std::vector<double>> exchange_;
};

// Of the phases that take a chunk out. Backward with `keep` no keys go out; their gradients, which
// come back in the homes' lanes like results, are taken for no flow of their own.
std::vector<PhaseFlows> phase_flows(const FlowTable& flows, const ChunkBytes& bytes) {
  std::vector<PhaseBytes> phases = bytes.phases();
  phases.resize(phases.size() - 2);
  std::vector<PhaseFlows> result;
  result.reserve(phases.size());
  for (const auto& [first, then] : phases) {
    result.push_back({flows.outward({.q_out = first.q_out, .kv_out = first.kv_out}),
                      flows.outward({.relay_out = first.relay_out + then.relay_out})});
  }
  return result;
}

// Transports between nodes do not post ahead, and then none of the pool's does.
bool in_one_node(const Cluster& cluster, const PoolPlan& plan, std::int64_t first_gpu) {
  const std::int64_t last_gpu = first_gpu + plan.workers() - 1;
  return first_gpu / cluster.gpus_per_node == last_gpu / cluster.gpus_per_node;
}

// Both passes of every worker, and what they are made of.
struct PoolPasses {
  PoolPasses(const Environment& environment, const PoolPlan& plan, const PoolTurn& turn)
      : calls(CallCounter(environment, plan).by_worker()),
        flows(flow_table(environment, plan, turn.first_gpu)),
        forward_bytes(plan, false),
        backward_bytes(plan, true) {
    const std::vector<std::int64_t> additions = addition_bytes(plan);
    const PassTimer forward_timer(environment, flows, forward_bytes);
    const PassTimer backward_timer(environment, flows, backward_bytes);
    for (std::size_t w = 0; w < calls.size(); ++w) {
      const double slowness =
          environment.slowness(turn.first_gpu + static_cast<std::int64_t>(w), turn.step);
      const WorkerCalls& call = calls[w];
      forward.workers.push_back(
          forward_timer.of(w, call.local.forward, call.chunk.forward, 0, slowness));
      backward.workers.push_back(backward_timer.of(w, call.local.backward, call.chunk.backward,
                                                   environment.device().add_ps(additions[w]),
                                                   slowness));
    }
    forward.flows = phase_flows(flows, forward_bytes);
    backward.flows = phase_flows(flows, backward_bytes);
    forward.posts_ahead = backward.posts_ahead =
        in_one_node(environment.scenario().cluster, plan, turn.first_gpu);
  }

  std::vector<WorkerCalls> calls;
  FlowTable flows;
  ChunkBytes forward_bytes, backward_bytes;
  PoolPassTimes forward, backward;
};

// By worker.
std::vector<double> pass_seconds(const PoolPassTimes& pass, bool overlapped, double loss) {
  std::vector<double> seconds;
  seconds.reserve(pass.workers.size());
  if (overlapped) {
    for (const PassTimeline& worker : overlapped_timelines(pass, loss)) {
      seconds.push_back(worker.end_s());
    }
  } else {
    for (const ChunkedPassTimes& worker : pass.workers) {
      seconds.push_back(sequential_seconds(worker));
    }
  }
  return seconds;
}

}  // namespace

PoolTimes plan_times(const Environment& environment, const PoolPlan& plan, const PoolTurn& turn) {
  const PoolPasses passes(environment, plan, turn);
  const double loss = environment.scenario().cluster.overlap_loss;
  const std::vector<double> forward = pass_seconds(passes.forward, turn.overlapped, loss);
  const std::vector<double> backward = pass_seconds(passes.backward, turn.overlapped, loss);
  PoolTimes times;
  times.workers.reserve(passes.calls.size());
  for (std::size_t worker = 0; worker < passes.calls.size(); ++worker) {
    times.workers.push_back({passes.forward.workers[worker].compute_s(), forward[worker],
                             passes.backward.workers[worker].compute_s(), backward[worker]});
    const WorkerCalls& call = passes.calls[worker];
    times.work += call.local.work + call.chunk.work * plan.options.chunks;
  }
  check_port_rates(times, passes.flows.busiest_port_seconds(passes.forward_bytes.whole()),
                   passes.flows.busiest_port_seconds(passes.backward_bytes.whole()));
  times.forward_bytes = passes.flows.bytes(passes.forward_bytes.whole());
  times.backward_bytes = passes.flows.bytes(passes.backward_bytes.whole());
  times.extra_memory_bytes = max_memory_bytes(plan);
  return times;
}

std::vector<WorkerSchedule> plan_schedule(const Environment& environment, const PoolPlan& plan,
                                          const PoolTurn& turn) {
  const PoolPasses passes(environment, plan, turn);
  const double loss = environment.scenario().cluster.overlap_loss;
  std::vector<PassTimeline> forward = overlapped_timelines(passes.forward, loss);
  std::vector<PassTimeline> backward = overlapped_timelines(passes.backward, loss);
  std::vector<WorkerSchedule> schedule;
  schedule.reserve(forward.size());
  for (std::size_t worker = 0; worker < forward.size(); ++worker) {
    schedule.push_back({std::move(forward[worker]), std::move(backward[worker])});
  }
  return schedule;
}

}  // namespace libra
