#include "libra/runtime/forward_pass.h"

#include <limits>

#include "libra/runtime/tensor_views.h"

namespace libra {

ForwardPass::ForwardPass(const PassArguments& arguments, const ForwardTensors& own)
    : ChunkedPass(arguments, legs_of(arguments.plan.options, own)), own_(own) {}

ChunkedPass::Legs ForwardPass::legs_of(const PlanOptions& options, const ForwardTensors& own) {
  Legs legs{Phase::kForwardDispatch, Phase::kForwardReturn, {}, {}, {}};
  legs.queries = {{own.q, &ArenaLayout::q}};
  legs.keys = {{own.k, &ArenaLayout::k}, {own.v, &ArenaLayout::v}};
  legs.results = {{own.o, &ArenaLayout::o}};
  if (options.lse_goes_home()) legs.results.push_back({own.lse, &ArenaLayout::lse});
  return legs;
}

void ForwardPass::get_ready() {
  if (!program().local.forward.empty()) {
    attention().prepare(local_call(program().local, Pass::kForward, heads(), softmax_scale()), own_,
                        stream());
  }
  for (const EntryGroup& group : program().chunked) {
    attention().prepare(chunk_call(group, Pass::kForward, heads(), 0, softmax_scale()),
                        tensors_of(group, 0), stream());
  }
}

// Rows that neither this worker computes nor anybody sends home.
void ForwardPass::begin() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (!options().lse_goes_home()) attention().fill(own_.lse, kNan, stream());
  for (const TokenRange rows : program().padding) {
    attention().fill(sub_tensor(own_.o, rows.begin, rows.size(), 0, own_.o.heads), 0.0, stream());
    attention().fill(sub_tensor(own_.lse, rows.begin, rows.size(), 0, own_.lse.heads), -kInfinity,
                     stream());
  }
}

void ForwardPass::compute_local() {
  if (program().local.forward.empty()) return;
  const EventLog::Span span = context().log.span("forward local", -1, stream());
  attention().forward(local_call(program().local, Pass::kForward, heads(), softmax_scale()), own_,
                      stream());
}

void ForwardPass::compute_chunk(std::int32_t chunk) {
  const bool keeps = options().backward == BackwardMode::kKeep && memory().saved.bytes > 0;
  if (keeps) save_inputs(chunk);
  attend(chunk);
  if (keeps) save_results(chunk);
}

void ForwardPass::attend(std::int32_t chunk) {
  if (program().chunked.empty()) return;
  const EventLog::Span span = context().log.span("forward chunk", chunk, stream());
  for (const EntryGroup& group : program().chunked) {
    attention().forward(chunk_call(group, Pass::kForward, heads(), chunk, softmax_scale()),
                        tensors_of(group, chunk), stream());
  }
}

ForwardTensors ForwardPass::tensors_of(const EntryGroup& group, std::int32_t chunk) const {
  ForwardTensors tensors = own_;
  chunk_tensors().use(group, chunk, arena(), tensors);
  return tensors;
}

void ForwardPass::save_inputs(std::int32_t chunk) {
  const EventLog::Span span = context().log.span("forward keep inputs", chunk, stream());
  save(memory().arena.q, memory().saved.q, chunk);
  if (!heads().first_of_kv_chunk(chunk)) return;
  const std::int32_t kv_chunk = heads().kv_chunk_of(chunk);
  save(memory().arena.k, memory().saved.k, kv_chunk);
  save(memory().arena.v, memory().saved.v, kv_chunk);
}

void ForwardPass::save_results(std::int32_t chunk) {
  const EventLog::Span span = context().log.span("forward keep results", chunk, stream());
  save(memory().arena.o, memory().saved.o, chunk);
  save(memory().arena.lse, memory().saved.lse, chunk);
}

void ForwardPass::save(const Region& from, const Region& to, std::int32_t slot) {
  if (from.rows == 0) return;
  attention().copy(region_rows(arena().memory, from, slot, 0, from.rows),
                   region_rows(saved().memory, to, slot, 0, to.rows), stream());
}

}  // namespace libra
