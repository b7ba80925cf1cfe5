#include "libra/runtime/backward_pass.h"

#include "libra/base/index.h"
#include "libra/runtime/resident_keys.h"
#include "libra/runtime/tensor_views.h"

namespace libra {

BackwardPass::BackwardPass(const PoolPlan& plan, const WorkerProgram& program, const Routes& routes,
                           WorkerContext& context, const BackwardTensors& own, double softmax_scale,
                           std::byte* saved, std::byte* scratch, Stream& stream)
    : plan_(plan),
      program_(program),
      routes_(routes),
      context_(context),
      own_(own),
      scale_(softmax_scale),
      saved_(saved),
      scratch_(scratch),
      stream_(stream),
      step_(context.next_step++),
      arena_(context.transport.arena()),
      accumulated_(accumulation_dtype(plan.options.storage)),
      dispatched_(at(plan.options.chunks)),
      returned_(at(plan.options.chunks)),
      arriving_(at(plan.options.chunks)),
      key_gradients_(at(routes.heads().kv_chunks)) {}

void BackwardPass::run() {
  clear_accumulators();
  post_query_gradient_receives();
  post_dispatch(0);
  run_local();
  for (std::int32_t chunk = 0; chunk < plan_.options.chunks; ++chunk) run_chunk(chunk);
  add_key_gradients(routes_.heads().kv_chunks - 1);
  convert_gradients();
  finish();
}

void BackwardPass::clear_accumulators() {
  const BackwardTensors accumulating = own_accumulating();
  for (const TensorView& tensor : {accumulating.dq, accumulating.dk, accumulating.dv}) {
    context_.attention.fill(tensor, 0.0, stream_);
  }
  for (const TokenRange rows : program_.padding) {
    context_.attention.fill(sub_tensor(own_.dq, rows.begin, rows.size(), 0, own_.dq.heads), 0.0,
                            stream_);
  }
}

void BackwardPass::post_query_gradient_receives() {
  for (std::int32_t chunk = 0; chunk < plan_.options.chunks; ++chunk) {
    Exchange exchange{tag(Phase::kBackwardReturn, chunk), {}, {}};
    routes_.return_receives(exchange, own_.dq, &ArenaLayout::dq, chunk);
    arriving_[at(chunk)] = context_.transport.post(exchange, stream_);
  }
}

void BackwardPass::post_dispatch(std::int32_t chunk) {
  const HeadSplit& heads = routes_.heads();
  Exchange exchange{tag(Phase::kBackwardDispatch, chunk), {}, {}};
  routes_.dispatch_queries(exchange, own_.d_o, &ArenaLayout::d_o, chunk, arena_);
  if (refetches()) {
    routes_.dispatch_queries(exchange, own_.q, &ArenaLayout::q, chunk, arena_);
    routes_.dispatch_queries(exchange, own_.o, &ArenaLayout::o, chunk, arena_);
    routes_.dispatch_queries(exchange, own_.lse, &ArenaLayout::lse, chunk, arena_);
    if (heads.first_of_kv_chunk(chunk)) {
      const std::int32_t kv_chunk = heads.kv_chunk_of(chunk);
      routes_.dispatch_keys(exchange, own_.k, &ArenaLayout::k, kv_chunk, arena_);
      routes_.dispatch_keys(exchange, own_.v, &ArenaLayout::v, kv_chunk, arena_);
    }
  }
  dispatched_[at(chunk)] = context_.transport.post(exchange, stream_);
}

void BackwardPass::run_local() {
  if (program_.local.backward.empty()) return;
  const EventLog::Span span = context_.log.span("backward local", -1, stream_);
  context_.attention.backward(local_call(program_.local, Pass::kBackward, routes_.heads(), scale_),
                              own_accumulating(), stream_);
}

// Slots as in the forward pass; a slot of dK and dV is free once its gradients have left, two KV
// chunks ago.
void BackwardPass::run_chunk(std::int32_t chunk) {
  const HeadSplit& heads = routes_.heads();
  const std::int32_t kv_chunk = heads.kv_chunk_of(chunk);
  if (chunk + 1 < plan_.options.chunks) post_dispatch(chunk + 1);
  if (heads.first_of_kv_chunk(chunk)) {
    if (refetches()) {
      copy_resident_keys(program_, routes_, kv_chunk, {own_.k, own_.v}, arena_, context_.attention,
                         stream_);
    }
    clear_key_gradients(kv_chunk);
  }
  context_.transport.wait(dispatched_[at(chunk)], stream_);
  if (chunk >= 2) context_.transport.wait(returned_[at(chunk - 2)], stream_);
  compute(chunk);
  post_query_gradients(chunk);
  if (!heads.last_of_kv_chunk(chunk)) return;
  post_key_gradients(kv_chunk);
  if (kv_chunk > 0) add_key_gradients(kv_chunk - 1);
}

void BackwardPass::clear_key_gradients(std::int32_t kv_chunk) {
  const ArenaLayout& arena = routes_.memory().arena;
  const AttentionShape& shape = plan_.options.shape;
  context_.attention.fill(key_tensor(arena_, arena.dk, kv_chunk, shape.head_dim, accumulated_), 0.0,
                          stream_);
  context_.attention.fill(key_tensor(arena_, arena.dv, kv_chunk, shape.value_dim, accumulated_),
                          0.0, stream_);
}

void BackwardPass::compute(std::int32_t chunk) {
  if (program_.chunked.empty()) return;
  const EventLog::Span span = context_.log.span("backward chunk", chunk, stream_);
  const TensorView dq = query_tensor(scratch_, routes_.memory().scratch.dq_arena, 0,
                                     plan_.options.shape.head_dim, accumulated_);
  context_.attention.fill(dq, 0.0, stream_);
  for (const EntryGroup& group : program_.chunked) {
    context_.attention.backward(chunk_call(group, Pass::kBackward, routes_.heads(), chunk, scale_),
                                tensors_of(group, chunk), stream_);
  }
  context_.attention.convert(dq,
                             query_tensor(arena_, routes_.memory().arena.dq, chunk,
                                          plan_.options.shape.head_dim, plan_.options.storage),
                             stream_);
}

void BackwardPass::post_query_gradients(std::int32_t chunk) {
  Exchange exchange{tag(Phase::kBackwardReturn, chunk), {}, {}};
  routes_.return_sends(exchange, &ArenaLayout::dq, chunk, arena_);
  returned_[at(chunk)] = context_.transport.post(exchange, stream_);
}

void BackwardPass::post_key_gradients(std::int32_t kv_chunk) {
  Exchange exchange{tag(Phase::kGradientReturn, kv_chunk), {}, {}};
  routes_.return_gradients(exchange, &ArenaLayout::dk, &ArenaLayout::dk_home, kv_chunk, arena_);
  routes_.return_gradients(exchange, &ArenaLayout::dv, &ArenaLayout::dv_home, kv_chunk, arena_);
  key_gradients_[at(kv_chunk)] = context_.transport.post(exchange, stream_);
}

// By destination, this worker's own share in its place among the others: kv_out is sorted by
// destination.
void BackwardPass::add_key_gradients(std::int32_t kv_chunk) {
  const ArenaLayout& arena = routes_.memory().arena;
  context_.transport.wait(key_gradients_[at(kv_chunk)], stream_);
  bool own_share_added = false;
  std::int64_t staged_row = 0;
  for (const RowMove& move : program_.kv_out) {
    if (!own_share_added && move.to > program_.worker) {
      add_own_share(kv_chunk);
      own_share_added = true;
    }
    add_rows({arena.dk_home, arena.dv_home, staged_row}, move, kv_chunk);
    staged_row += move.rows;
  }
  if (!own_share_added) add_own_share(kv_chunk);
}

void BackwardPass::add_own_share(std::int32_t kv_chunk) {
  const ArenaLayout& arena = routes_.memory().arena;
  for (const RowMove& copy : program_.kv_copies) {
    add_rows({arena.dk, arena.dv, copy.to_row}, copy, kv_chunk);
  }
}

void BackwardPass::add_rows(const GradientRows& from, const RowMove& move, std::int32_t kv_chunk) {
  const AttentionShape& shape = plan_.options.shape;
  const BackwardTensors to = own_accumulating();
  const std::int32_t head = routes_.own_kv_head(move.shard, kv_chunk);
  const std::int32_t heads = routes_.heads().kv_chunk_heads;
  const TensorView dk = key_tensor(arena_, from.dk, kv_chunk, shape.head_dim, accumulated_);
  const TensorView dv = key_tensor(arena_, from.dv, kv_chunk, shape.value_dim, accumulated_);
  context_.attention.add(sub_tensor(dk, from.row, move.rows, 0, heads),
                         sub_tensor(to.dk, move.from_row, move.rows, head, heads), stream_);
  context_.attention.add(sub_tensor(dv, from.row, move.rows, 0, heads),
                         sub_tensor(to.dv, move.from_row, move.rows, head, heads), stream_);
}

// dQ of queries computed elsewhere comes home in the storage dtype, straight into the caller's
// rows.
void BackwardPass::convert_gradients() {
  const BackwardTensors from = own_accumulating();
  for (const OwnBlock& block : program_.computed_here) {
    context_.attention.convert(
        sub_tensor(from.dq, block.row, block.rows, block.q_head, block.heads),
        sub_tensor(own_.dq, block.row, block.rows, block.q_head, block.heads), stream_);
  }
  context_.attention.convert(from.dk, own_.dk, stream_);
  context_.attention.convert(from.dv, own_.dv, stream_);
}

void BackwardPass::finish() {
  for (const Handle handle : returned_) context_.transport.wait(handle, stream_);
  for (const Handle handle : arriving_) context_.transport.wait(handle, stream_);
  for (const TensorView& gradient : {own_.dq, own_.dk, own_.dv}) {
    context_.attention.poison_on_failure(gradient, stream_);
  }
}

BackwardTensors BackwardPass::own_accumulating() const {
  const ScratchLayout& scratch = routes_.memory().scratch;
  BackwardTensors tensors = own_;
  tensors.dq = own_accumulator(scratch.dq, program_.q_heads, plan_.options.shape.head_dim);
  tensors.dk = own_accumulator(scratch.dk, program_.kv_heads, plan_.options.shape.head_dim);
  tensors.dv = own_accumulator(scratch.dv, program_.kv_heads, plan_.options.shape.value_dim);
  return tensors;
}

BackwardTensors BackwardPass::tensors_of(const EntryGroup& group, std::int32_t chunk) const {
  BackwardTensors tensors = own_accumulating();
  if (group.q_in_arena) use_foreign_queries(tensors, chunk);
  if (group.kv_in_arena) use_fetched_keys(tensors, routes_.heads().kv_chunk_of(chunk));
  return tensors;
}

void BackwardPass::use_foreign_queries(BackwardTensors& tensors, std::int32_t chunk) const {
  const ArenaLayout& arena = routes_.memory().arena;
  const SavedLayout& saved = routes_.memory().saved;
  const AttentionShape& shape = plan_.options.shape;
  const DType stored = plan_.options.storage;
  std::byte* from = refetches() ? arena_ : saved_;
  tensors.q = query_tensor(from, refetches() ? arena.q : saved.q, chunk, shape.head_dim, stored);
  tensors.o = query_tensor(from, refetches() ? arena.o : saved.o, chunk, shape.value_dim, stored);
  tensors.lse = query_tensor(from, refetches() ? arena.lse : saved.lse, chunk, 1, accumulated_);
  tensors.d_o = query_tensor(arena_, arena.d_o, chunk, shape.value_dim, stored);
  tensors.dq =
      query_tensor(scratch_, routes_.memory().scratch.dq_arena, 0, shape.head_dim, accumulated_);
}

void BackwardPass::use_fetched_keys(BackwardTensors& tensors, std::int32_t kv_chunk) const {
  const ArenaLayout& arena = routes_.memory().arena;
  const SavedLayout& saved = routes_.memory().saved;
  const AttentionShape& shape = plan_.options.shape;
  const DType stored = plan_.options.storage;
  std::byte* from = refetches() ? arena_ : saved_;
  tensors.k = key_tensor(from, refetches() ? arena.k : saved.k, kv_chunk, shape.head_dim, stored);
  tensors.v = key_tensor(from, refetches() ? arena.v : saved.v, kv_chunk, shape.value_dim, stored);
  tensors.dk = key_tensor(arena_, arena.dk, kv_chunk, shape.head_dim, accumulated_);
  tensors.dv = key_tensor(arena_, arena.dv, kv_chunk, shape.value_dim, accumulated_);
}

TensorView BackwardPass::query_tensor(std::byte* memory, const Region& region, std::int32_t chunk,
                                      std::int32_t dim, DType dtype) const {
  return region_tensor(memory, region, chunk, routes_.heads().chunk_heads, dim, dtype);
}

TensorView BackwardPass::key_tensor(std::byte* memory, const Region& region, std::int32_t kv_chunk,
                                    std::int32_t dim, DType dtype) const {
  return region_tensor(memory, region, kv_chunk, routes_.heads().kv_chunk_heads, dim, dtype);
}

TensorView BackwardPass::own_accumulator(const Region& region, std::int32_t heads,
                                         std::int32_t dim) const {
  return region_tensor(scratch_, region, 0, heads, dim, accumulated_);
}

}  // namespace libra
