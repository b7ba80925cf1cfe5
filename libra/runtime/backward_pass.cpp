#include "libra/runtime/backward_pass.h"

#include "libra/base/index.h"
#include "libra/runtime/tensor_views.h"

namespace libra {
namespace {

BackwardTensors accumulating_in(const ScratchLayout& scratch, std::byte* memory,
                                BackwardTensors own) {
  const auto accumulator = [&](const Region& region, const TensorView& like) {
    return region_tensor(memory, region, 0, like.heads, like.dim, accumulation_dtype(like.dtype));
  };
  own.dq = accumulator(scratch.dq, own.dq);
  own.dk = accumulator(scratch.dk, own.dk);
  own.dv = accumulator(scratch.dv, own.dv);
  return own;
}

}  // namespace

BackwardPass::BackwardPass(const PassArguments& arguments, const BackwardTensors& own,
                           std::byte* scratch)
    : ChunkedPass(arguments, legs_of(arguments.plan.options, own)),
      own_(own),
      accumulating_(accumulating_in(memory().scratch, scratch, own)),
      whole_(whole_call(program(), softmax_scale())),
      writes_(!whole_.entries.empty() && attention().can_write(whole_, own_)),
      scratch_(scratch),
      key_gradients_(at(heads().kv_chunks)),
      lent_gradients_(at(heads().kv_chunks)),
      shares_out_(at(heads().kv_chunks)),
      shares_in_(at(heads().kv_chunks)) {
  if (writes_) {
    summed_rows_ = program().summed_rows;
  } else {
    whole_.gradients = Gradients::kAdded;
    summed_rows_ = {{0, program().rows}};
  }
}

ChunkedPass::Legs BackwardPass::legs_of(const PlanOptions& options, const BackwardTensors& own) {
  Legs legs{Phase::kBackwardDispatch, Phase::kBackwardReturn, {}, {}, {}};
  legs.queries = {{own.d_o, &ArenaLayout::d_o}};
  legs.results = {{own.dq, &ArenaLayout::dq}};
  if (options.backward == BackwardMode::kKeep) return legs;
  legs.queries.push_back({own.q, &ArenaLayout::q});
  legs.queries.push_back({own.o, &ArenaLayout::o});
  legs.queries.push_back({own.lse, &ArenaLayout::lse});
  legs.keys = {{own.k, &ArenaLayout::k}, {own.v, &ArenaLayout::v}};
  return legs;
}

void BackwardPass::get_ready() {
  if (!program().local.backward.empty()) {
    attention().prepare(local_call(program().local, Pass::kBackward, heads(), softmax_scale()),
                        accumulating_, stream());
  }
  if (!whole_.entries.empty()) attention().prepare(whole_, whole_tensors(), stream());
  for (const EntryGroup& group : program().chunked) {
    attention().prepare(chunk_call(group, Pass::kBackward, heads(), 0, softmax_scale()),
                        tensors_of(group, 0), stream());
  }
}

void BackwardPass::begin() {
  const EventLog::Span span = context().log.span("backward clear", -1, stream());
  for (const TensorView& sum : {accumulating_.dq, accumulating_.dk, accumulating_.dv}) {
    for (const TokenRange rows : summed_rows_) {
      attention().fill(sub_tensor(sum, rows.begin, rows.size(), 0, sum.heads), 0.0, stream());
    }
  }
  for (const TokenRange rows : program().padding) {
    attention().fill(sub_tensor(own_.dq, rows.begin, rows.size(), 0, own_.dq.heads), 0.0, stream());
  }
}

void BackwardPass::compute_local() {
  if (!program().local.backward.empty()) {
    const EventLog::Span span = context().log.span("backward local", -1, stream());
    attention().backward(local_call(program().local, Pass::kBackward, heads(), softmax_scale()),
                         accumulating_, stream());
  }
  if (!whole_.entries.empty()) {
    const EventLog::Span span = context().log.span("backward whole", -1, stream());
    attention().backward(whole_, whole_tensors(), stream());
  }
}

void BackwardPass::compute_chunk(std::int32_t chunk) {
  if (program().chunked.empty()) return;
  if (heads().first_of_kv_chunk(chunk)) clear_key_gradients(heads().kv_chunk_of(chunk));
  const EventLog::Span span = context().log.span("backward chunk", chunk, stream());
  const TensorView dq = chunk_tensors().dq_sum(scratch_, memory().scratch.dq_arena);
  attention().fill(dq, 0.0, stream());
  for (const EntryGroup& group : program().chunked) {
    attention().backward(chunk_call(group, Pass::kBackward, heads(), chunk, softmax_scale()),
                         tensors_of(group, chunk), stream());
  }
  attention().convert(dq, chunk_tensors().q(arena().memory, memory().arena.dq, chunk), stream());
}

// The gradients that were in the slot must have left.
void BackwardPass::clear_key_gradients(std::int32_t kv_chunk) {
  const std::int32_t before = kv_chunk - memory().arena.dk.slots;
  if (before >= 0) wait(key_gradients_[at(before)]);
  if (before >= 0 && relays()) wait(shares_out_[at(before)]);
  const auto& [base, layout] = arena();
  attention().fill(chunk_tensors().dk_sum(base, layout.dk, kv_chunk), 0.0, stream());
  attention().fill(chunk_tensors().dv_sum(base, layout.dv, kv_chunk), 0.0, stream());
}

BackwardTensors BackwardPass::tensors_of(const EntryGroup& group, std::int32_t chunk) const {
  BackwardTensors tensors = accumulating_;
  if (refetches()) {
    chunk_tensors().use(group, chunk, arena(), tensors);
  } else {
    chunk_tensors().use(group, chunk, saved(), tensors);
  }
  const auto& [base, layout] = arena();
  if (group.q_in_arena) {
    tensors.d_o = chunk_tensors().o(base, layout.d_o, chunk);
    tensors.dq = chunk_tensors().dq_sum(scratch_, memory().scratch.dq_arena);
  }
  if (group.kv_in_arena) {
    const std::int32_t kv_chunk = heads().kv_chunk_of(chunk);
    tensors.dk = chunk_tensors().dk_sum(base, layout.dk, kv_chunk);
    tensors.dv = chunk_tensors().dv_sum(base, layout.dv, kv_chunk);
  }
  return tensors;
}

void BackwardPass::finish_chunk(std::int32_t chunk) {
  if (!heads().last_of_kv_chunk(chunk)) return;
  const std::int32_t kv_chunk = heads().kv_chunk_of(chunk);
  relays() ? post_shares(kv_chunk) : post_key_gradients(kv_chunk, stream());
  add_own_share(kv_chunk);
  if (relays_beside() && relays()) send_sums(kv_chunk);
  if (sums_in_order() && kv_chunk > 0) send_sums(kv_chunk - 1);
}

// What others computed is added last, when it has had the time of all chunks to come home.
void BackwardPass::finish() {
  if (sums_in_order()) send_sums(heads().kv_chunks - 1);
  for (std::int32_t kv_chunk = 0; kv_chunk < heads().kv_chunks; ++kv_chunk) {
    wait(goes_ahead() ? lent_gradients_[at(kv_chunk)] : key_gradients_[at(kv_chunk)]);
    add_others_share(kv_chunk);
  }
  for (const Handle handle : key_gradients_) wait(handle);
  if (relays()) {
    for (const Handle handle : shares_out_) wait(handle);
  }
  convert_gradients();
}

void BackwardPass::post_home_extra(std::int32_t chunk) {
  if (!heads().last_of_kv_chunk(chunk)) return;
  const std::int32_t kv_chunk = heads().kv_chunk_of(chunk);
  if (!sums_in_order()) return post_lent_gradients(kv_chunk);
  if (kv_chunk > 0) post_lent_gradients(kv_chunk - 1);
  if (chunk == options().chunks - 1) post_lent_gradients(kv_chunk);
}

void BackwardPass::post_lent_gradients(std::int32_t kv_chunk) {
  Exchange gradients = exchange(Phase::kGradientReturn, kv_chunk);
  receive_key_gradients(gradients, kv_chunk);
  lent_gradients_[at(kv_chunk)] = post(gradients);
}

// Two exchanges of one tag: a relay needs what it receives before its own slot is free again.
void BackwardPass::post_shares(std::int32_t kv_chunk) {
  std::byte* const memory = arena().memory;
  Exchange out = exchange(Phase::kGradientReturn, kv_chunk, kShareRound);
  Exchange in = out;
  routes().send_shares(out, &ArenaLayout::dk, kv_chunk, memory);
  routes().send_shares(out, &ArenaLayout::dv, kv_chunk, memory);
  routes().receive_shares(in, &ArenaLayout::dk, &ArenaLayout::dk_relay, kv_chunk, memory);
  routes().receive_shares(in, &ArenaLayout::dv, &ArenaLayout::dv_relay, kv_chunk, memory);
  out.more = !goes_ahead();
  shares_out_[at(kv_chunk)] = post(out);
  shares_in_[at(kv_chunk)] = post(in);
}

// Beside the pass's stream, shares that have come say that it has computed this worker's own: they
// are posted after that.
void BackwardPass::send_sums(std::int32_t kv_chunk) {
  const bool adds = !program().relay_out.empty();
  Stream& used = adds && relays_beside() ? *context().relays : stream();
  if (adds) add_shares(kv_chunk, used);
  post_key_gradients(kv_chunk, used);
}

// In the order of destinations: relay_out is sorted by them.
void BackwardPass::add_shares(std::int32_t kv_chunk, Stream& used) {
  wait(shares_in_[at(kv_chunk)], used);
  const auto& [base, layout] = arena();
  std::int64_t staged_row = 0;
  for (const RowMove& move : program().relay_out) {
    const auto add = [&](const TensorView& share, const TensorView& sum) {
      attention().add(sub_tensor(share, staged_row, move.rows, 0, share.heads),
                      sub_tensor(sum, move.from_row, move.rows, 0, sum.heads), used);
    };
    add(chunk_tensors().dk_sum(base, layout.dk_relay, kv_chunk),
        chunk_tensors().dk_sum(base, layout.dk, kv_chunk));
    add(chunk_tensors().dv_sum(base, layout.dv_relay, kv_chunk),
        chunk_tensors().dv_sum(base, layout.dv, kv_chunk));
    staged_row += move.rows;
  }
}

void BackwardPass::post_key_gradients(std::int32_t kv_chunk, Stream& used) {
  Exchange gradients = exchange(Phase::kGradientReturn, kv_chunk);
  routes().send_gradients(gradients, &ArenaLayout::dk, kv_chunk, arena().memory);
  routes().send_gradients(gradients, &ArenaLayout::dv, kv_chunk, arena().memory);
  if (!goes_ahead()) receive_key_gradients(gradients, kv_chunk);
  key_gradients_[at(kv_chunk)] = post(gradients, used);
}

void BackwardPass::receive_key_gradients(Exchange& gradients, std::int32_t kv_chunk) const {
  std::byte* const memory = arena().memory;
  routes().receive_gradients(gradients, &ArenaLayout::dk, &ArenaLayout::dk_home, kv_chunk, memory);
  routes().receive_gradients(gradients, &ArenaLayout::dv, &ArenaLayout::dv_home, kv_chunk, memory);
}

// This worker's own share of fetched groups, which the arena holds, before its slot is used again.
void BackwardPass::add_own_share(std::int32_t kv_chunk) {
  if (program().kv_copies.empty()) return;
  const EventLog::Span span = context().log.span("backward own share", kv_chunk, stream());
  for (const RowMove& copy : program().kv_copies) {
    add_rows({memory().arena.dk, memory().arena.dv, copy.to_row}, copy, kv_chunk);
  }
}

// In the order of destinations: kv_out is sorted by them.
void BackwardPass::add_others_share(std::int32_t kv_chunk) {
  if (program().kv_out.empty()) return;
  const EventLog::Span span = context().log.span("backward others' share", kv_chunk, stream());
  std::int64_t staged_row = 0;
  for (const RowMove& move : program().kv_out) {
    add_rows({memory().arena.dk_home, memory().arena.dv_home, staged_row}, move, kv_chunk);
    staged_row += move.rows;
  }
}

void BackwardPass::add_rows(const GradientRows& from, const RowMove& move, std::int32_t kv_chunk) {
  const std::int32_t head = routes().own_kv_head(move.shard, kv_chunk);
  const auto add = [&](const TensorView& sent, const TensorView& sum) {
    attention().add(sub_tensor(sent, from.row, move.rows, 0, sent.heads),
                    sub_tensor(sum, move.from_row, move.rows, head, sent.heads), stream());
  };
  add(chunk_tensors().dk_sum(arena().memory, from.dk, kv_chunk), accumulating_.dk);
  add(chunk_tensors().dv_sum(arena().memory, from.dv, kv_chunk), accumulating_.dv);
}

// dQ of queries computed elsewhere comes home in the storage dtype, straight into the caller's
// rows.
void BackwardPass::convert_gradients() {
  const EventLog::Span span = context().log.span("backward convert", -1, stream());
  for (const OwnBlock& block : program().computed_here) {
    convert_sums(accumulating_.dq, own_.dq, block);
  }
  const OwnBlock all{0, program().rows, 0, program().kv_heads};
  convert_sums(accumulating_.dk, own_.dk, all);
  convert_sums(accumulating_.dv, own_.dv, all);
}

// What of the block are sums.
void BackwardPass::convert_sums(const TensorView& sums, const TensorView& to,
                                const OwnBlock& block) {
  for (const TokenRange summed : summed_rows_) {
    const TokenRange rows = intersect(summed, {block.row, block.row + block.rows});
    if (rows.empty()) continue;
    attention().convert(sub_tensor(sums, rows.begin, rows.size(), block.q_head, block.heads),
                        sub_tensor(to, rows.begin, rows.size(), block.q_head, block.heads),
                        stream());
  }
}

}  // namespace libra
