#include "libra/runtime/chunk_calls.h"

namespace libra {

AttentionCall chunk_call(const EntryGroup& group, Pass pass, const HeadSplit& heads,
                         std::int32_t chunk, double softmax_scale) {
  AttentionCall call;
  call.entries = pass == Pass::kForward ? group.forward : group.backward;
  call.q_heads = heads.chunk_heads;
  call.kv_heads = heads.kv_chunk_heads;
  call.q_head_shift = group.q_in_arena ? 0 : chunk * heads.chunk_heads;
  call.kv_head_shift = group.kv_in_arena ? 0 : heads.kv_chunk_of(chunk) * heads.kv_chunk_heads;
  call.softmax_scale = softmax_scale;
  return call;
}

AttentionCall local_call(const EntryGroup& group, Pass pass, const HeadSplit& heads,
                         double softmax_scale) {
  AttentionCall call;
  call.entries = pass == Pass::kForward ? group.forward : group.backward;
  call.q_heads = heads.shard_heads;
  call.kv_heads = heads.kv_shard_heads;
  call.softmax_scale = softmax_scale;
  return call;
}

AttentionCall whole_call(const WorkerProgram& program, double softmax_scale) {
  AttentionCall call;
  call.entries = program.whole;
  call.q_heads = program.q_heads;
  call.kv_heads = program.kv_heads;
  call.softmax_scale = softmax_scale;
  call.gradients = Gradients::kWritten;
  return call;
}

}  // namespace libra
