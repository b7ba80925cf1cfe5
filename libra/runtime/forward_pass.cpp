#include "libra/runtime/forward_pass.h"

#include <limits>

#include "libra/base/index.h"
#include "libra/runtime/resident_keys.h"
#include "libra/runtime/tensor_views.h"

namespace libra {

ForwardPass::ForwardPass(const PoolPlan& plan, const WorkerProgram& program, const Routes& routes,
                         WorkerContext& context, const ForwardTensors& own, double softmax_scale,
                         std::byte* saved, Stream& stream)
    : plan_(plan),
      program_(program),
      routes_(routes),
      context_(context),
      own_(own),
      scale_(softmax_scale),
      saved_(saved),
      stream_(stream),
      step_(context.next_step++),
      arena_(context.transport.arena()),
      dispatched_(at(plan.options.chunks)),
      returned_(at(plan.options.chunks)),
      arriving_(at(plan.options.chunks)) {}

// Sends are enqueued before the waits of the same phase, so that the order is right even if every
// stream of the device shares one queue.
void ForwardPass::run() {
  fill_rows_without_work();
  post_return_receives();
  post_dispatch(0);
  run_local();
  for (std::int32_t chunk = 0; chunk < plan_.options.chunks; ++chunk) run_chunk(chunk);
  finish();
}

void ForwardPass::fill_rows_without_work() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!lse_goes_home())
    context_.attention.fill(own_.lse, std::numeric_limits<double>::quiet_NaN(), stream_);
  for (const TokenRange rows : program_.padding) {
    context_.attention.fill(sub_tensor(own_.o, rows.begin, rows.size(), 0, own_.o.heads), 0.0,
                            stream_);
    context_.attention.fill(sub_tensor(own_.lse, rows.begin, rows.size(), 0, own_.lse.heads),
                            -kInfinity, stream_);
  }
}

// Results come straight into the caller's tensors, whose rows are nobody else's: no need to wait
// with these.
void ForwardPass::post_return_receives() {
  for (std::int32_t chunk = 0; chunk < plan_.options.chunks; ++chunk) {
    Exchange exchange{tag(Phase::kForwardReturn, chunk), {}, {}};
    routes_.return_receives(exchange, own_.o, &ArenaLayout::o, chunk);
    if (lse_goes_home()) routes_.return_receives(exchange, own_.lse, &ArenaLayout::lse, chunk);
    arriving_[at(chunk)] = context_.transport.post(exchange, stream_);
  }
}

void ForwardPass::post_dispatch(std::int32_t chunk) {
  const HeadSplit& heads = routes_.heads();
  Exchange exchange{tag(Phase::kForwardDispatch, chunk), {}, {}};
  routes_.dispatch_queries(exchange, own_.q, &ArenaLayout::q, chunk, arena_);
  if (heads.first_of_kv_chunk(chunk)) {
    const std::int32_t kv_chunk = heads.kv_chunk_of(chunk);
    routes_.dispatch_keys(exchange, own_.k, &ArenaLayout::k, kv_chunk, arena_);
    routes_.dispatch_keys(exchange, own_.v, &ArenaLayout::v, kv_chunk, arena_);
  }
  dispatched_[at(chunk)] = context_.transport.post(exchange, stream_);
}

void ForwardPass::run_local() {
  if (program_.local.forward.empty()) return;
  const EventLog::Span span = context_.log.span("forward local", -1, stream_);
  context_.attention.forward(local_call(program_.local, Pass::kForward, routes_.heads(), scale_),
                             own_, stream_);
}

// Slots: the dispatch of chunk + 1 goes where chunk - 1 was, whose computation is enqueued already.
// The results of this chunk go where those of chunk - 2 were, which must have left.
void ForwardPass::run_chunk(std::int32_t chunk) {
  if (chunk + 1 < plan_.options.chunks) post_dispatch(chunk + 1);
  if (routes_.heads().first_of_kv_chunk(chunk)) {
    copy_resident_keys(program_, routes_, routes_.heads().kv_chunk_of(chunk), {own_.k, own_.v},
                       arena_, context_.attention, stream_);
  }
  context_.transport.wait(dispatched_[at(chunk)], stream_);
  if (keeps()) save_inputs(chunk);
  if (chunk >= 2) context_.transport.wait(returned_[at(chunk - 2)], stream_);
  compute(chunk);
  if (keeps()) save_results(chunk);
  post_return(chunk);
}

void ForwardPass::save_inputs(std::int32_t chunk) {
  const ArenaLayout& arena = routes_.memory().arena;
  const SavedLayout& saved = routes_.memory().saved;
  const auto save = [&](const Region& from, const Region& to, std::int32_t slot) {
    if (from.rows == 0) return;
    context_.attention.copy(region_rows(arena_, from, slot, 0, from.rows),
                            region_rows(saved_, to, slot, 0, to.rows), stream_);
  };
  save(arena.q, saved.q, chunk);
  if (!routes_.heads().first_of_kv_chunk(chunk)) return;
  const std::int32_t kv_chunk = routes_.heads().kv_chunk_of(chunk);
  save(arena.k, saved.k, kv_chunk);
  save(arena.v, saved.v, kv_chunk);
}

void ForwardPass::save_results(std::int32_t chunk) {
  const ArenaLayout& arena = routes_.memory().arena;
  const SavedLayout& saved = routes_.memory().saved;
  if (arena.o.rows == 0) return;
  context_.attention.copy(region_rows(arena_, arena.o, chunk, 0, arena.o.rows),
                          region_rows(saved_, saved.o, chunk, 0, saved.o.rows), stream_);
  context_.attention.copy(region_rows(arena_, arena.lse, chunk, 0, arena.lse.rows),
                          region_rows(saved_, saved.lse, chunk, 0, saved.lse.rows), stream_);
}

void ForwardPass::compute(std::int32_t chunk) {
  if (program_.chunked.empty()) return;
  const EventLog::Span span = context_.log.span("forward chunk", chunk, stream_);
  for (const EntryGroup& group : program_.chunked) {
    context_.attention.forward(chunk_call(group, Pass::kForward, routes_.heads(), chunk, scale_),
                               tensors_of(group, chunk), stream_);
  }
}

ForwardTensors ForwardPass::tensors_of(const EntryGroup& group, std::int32_t chunk) const {
  const HeadSplit& heads = routes_.heads();
  const AttentionShape& shape = plan_.options.shape;
  const DType stored = plan_.options.storage;
  ForwardTensors tensors = own_;
  if (group.q_in_arena) {
    tensors.q = arena_tensor(&ArenaLayout::q, chunk, heads.chunk_heads, shape.head_dim, stored);
    tensors.o = arena_tensor(&ArenaLayout::o, chunk, heads.chunk_heads, shape.value_dim, stored);
    tensors.lse =
        arena_tensor(&ArenaLayout::lse, chunk, heads.chunk_heads, 1, accumulation_dtype(stored));
  }
  if (group.kv_in_arena) {
    const std::int32_t kv_chunk = heads.kv_chunk_of(chunk);
    tensors.k =
        arena_tensor(&ArenaLayout::k, kv_chunk, heads.kv_chunk_heads, shape.head_dim, stored);
    tensors.v =
        arena_tensor(&ArenaLayout::v, kv_chunk, heads.kv_chunk_heads, shape.value_dim, stored);
  }
  return tensors;
}

TensorView ForwardPass::arena_tensor(Routes::ArenaRegion region, std::int32_t slot,
                                     std::int32_t heads, std::int32_t dim, DType dtype) const {
  return region_tensor(arena_, routes_.memory().arena.*region, slot, heads, dim, dtype);
}

void ForwardPass::post_return(std::int32_t chunk) {
  Exchange exchange{tag(Phase::kForwardReturn, chunk), {}, {}};
  routes_.return_sends(exchange, &ArenaLayout::o, chunk, arena_);
  if (lse_goes_home()) routes_.return_sends(exchange, &ArenaLayout::lse, chunk, arena_);
  returned_[at(chunk)] = context_.transport.post(exchange, stream_);
}

void ForwardPass::finish() {
  for (const Handle handle : returned_) context_.transport.wait(handle, stream_);
  for (const Handle handle : arriving_) context_.transport.wait(handle, stream_);
  context_.attention.poison_on_failure(own_.o, stream_);
  context_.attention.poison_on_failure(own_.lse, stream_);
}

}  // namespace libra
