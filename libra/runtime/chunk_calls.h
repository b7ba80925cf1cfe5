// The attention calls of one chunk: an entry group with its heads shifted.
#pragma once

#include <cstdint>

#include "libra/attention/attention.h"
#include "libra/plan/head_split.h"
#include "libra/runtime/worker_program.h"

namespace libra {

enum class Pass : std::uint8_t { kForward, kBackward };

/// Chunk `chunk` of a group of the chunked class. Arena tensors hold just that chunk, own tensors
/// all heads.
AttentionCall chunk_call(const EntryGroup& group, Pass pass, const HeadSplit& heads,
                         std::int32_t chunk, double softmax_scale);

/// The local class: whole shards at once.
AttentionCall local_call(const EntryGroup& group, Pass pass, const HeadSplit& heads,
                         double softmax_scale);

/// Backward of the whole samples, of all own heads: to be written.
AttentionCall whole_call(const WorkerProgram& program, double softmax_scale);

}  // namespace libra
