#include "libra/attention/cudnn/attention_pass.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "libra/cuda/cuda_error.h"

namespace libra::cudnn {
namespace {

// Where cuDNN takes the tensor to begin: see TensorLayout::lead.
const std::byte* begin_of(const TensorView& tensor, const TensorLayout& layout) {
  return static_cast<const std::byte*>(tensor.data) - layout.lead * element_bytes(tensor.dtype);
}

}  // namespace

AttentionPass::AttentionPass(Pass pass, const AttentionCall& call, const PassTensors& tensors,
                             const Workplace& at)
    : key_(key_of(pass, call, tensors)),
      scale_(static_cast<float>(call.softmax_scale)),
      tensors_(tensors),
      at_(at) {}

AttentionPass::AttentionPass(const AttentionCall& call, const ForwardTensors& tensors,
                             const Workplace& at)
    : AttentionPass(Pass::kForward, call, tensors_of(call, tensors), at) {}

AttentionPass::AttentionPass(const AttentionCall& call, const BackwardTensors& tensors,
                             const Workplace& at)
    : AttentionPass(Pass::kBackward, call, tensors_of(call, tensors), at) {}

void AttentionPass::run() {
  const KeptPass& kept = get_ready();
  std::byte* const scratch = at_.scratch.reserve(kept.pass.scratch_bytes, at_.stream);
  for (const PreparedBatch& batch : kept.pass.batches) {
    enqueue(batch, {kept.tables + batch.tables, scratch});
  }
  clear_keyless(kept.tables);
  at_.scratch.done(at_.stream);
}

// A graph's kernels are loaded when it runs for the first time, which may wait for the device. So
// it runs once over entries without rows.
void AttentionPass::rehearse() {
  const KeptPass& kept = get_ready();
  std::int64_t bytes = kept.pass.scratch_bytes;
  for (const PreparedBatch& batch : kept.pass.batches) {
    bytes = std::max(bytes, aligned(batch.bytes) + batch.table_bytes);
  }
  std::byte* const scratch = at_.scratch.reserve(bytes, at_.stream);
  for (const PreparedBatch& batch : kept.pass.batches) {
    if (!at_.graphs.has_run(batch.shape)) run_over_nothing(batch, scratch);
  }
  at_.scratch.done(at_.stream);
}

// Zeros for tables, behind the batch's own scratch.
void AttentionPass::run_over_nothing(const PreparedBatch& batch, std::byte* scratch) const {
  std::byte* const tables = scratch + aligned(batch.bytes);
  check_cuda(cudaMemsetAsync(tables, 0, static_cast<std::size_t>(batch.table_bytes), at_.stream),
             "cudaMemsetAsync");
  at_.graphs.run(batch.shape, sdpa_memory(batch, {tables, scratch}), scratch + batch.workspace,
                 at_.stream);
}

const KeptPass& AttentionPass::get_ready() {
  const KeptPass* kept = at_.passes.find(key_);
  std::optional<PreparedPass> made;
  if (kept == nullptr) made = prepare_pass(key_, at_.options, at_.graphs);
  at_.scratch.enter(at_.stream);
  if (made.has_value()) {
    kept = &at_.passes.keep(key_, std::move(*made), at_.stream);
    at_.scratch.done(at_.stream);  // kept, whatever becomes of this call
  }
  pass_ = &kept->pass;
  return *kept;
}

std::int32_t AttentionPass::heads(Side side) const {
  return side == Side::kQueries ? key_.call.q_heads : key_.call.kv_heads;
}

// Where packed row 0 of a tensor lies in the caller's, or null if it must be copied.
std::byte* AttentionPass::in_place(const Operand& operand, const PreparedBatch& batch) const {
  if (!batch.in_place[operand.port]) return nullptr;
  const TensorView& tensor = tensors_[operand.port];
  const PieceRows& origin = batch.origin.of(operand.side);
  return static_cast<std::byte*>(tensor.data) +
         (origin.row * tensor.row_stride + origin.head * tensor.head_stride) *
             element_bytes(tensor.dtype);
}

PackedRows AttentionPass::packed_rows(const Operand& operand, const PreparedBatch& batch,
                                      const Memory& memory) const {
  const PlacedPieces& placed = batch.pieces.of(operand.side);
  return {reinterpret_cast<const PackedPiece*>(memory.tables + placed.pieces), placed.count,
          placed.rows, heads(operand.side)};
}

SdpaMemory AttentionPass::sdpa_memory(const PreparedBatch& batch, const Memory& memory) const {
  SdpaMemory result;
  result.queries = memory.tables + batch.lengths.queries;
  result.keys = memory.tables + batch.lengths.keys;
  result.scale = scale_;
  for (const Operand& operand : pass_->operands) {
    result.offsets[operand.port] = memory.tables + batch.offsets[operand.port];
    result.tensors[operand.port] = begin_of(tensors_[operand.port], key_.layouts[operand.port]);
    if (!operand.packed) continue;
    const std::byte* const original = in_place(operand, batch);
    result.tensors[operand.port] =
        original != nullptr ? original : memory.scratch + batch.packed[operand.port];
  }
  return result;
}

// Copies what must be packed.
void AttentionPass::gather(const PreparedBatch& batch, const Memory& memory) const {
  for (const Operand& operand : pass_->operands) {
    if (!operand.packed || operand.role != Role::kInput || batch.in_place[operand.port]) continue;
    pack(packed_rows(operand, batch, memory), tensors_[operand.port],
         memory.scratch + batch.packed[operand.port], at_.stream);
  }
}

void AttentionPass::distribute(const PreparedBatch& batch, const Memory& memory) const {
  for (const Operand& operand : pass_->operands) {
    if (operand.role == Role::kAdded) add_up(operand, batch, memory);
    if (operand.role != Role::kOutput || !operand.packed || batch.in_place[operand.port]) continue;
    unpack(packed_rows(operand, batch, memory), memory.scratch + batch.packed[operand.port],
           tensors_[operand.port], at_.stream);
  }
}

void AttentionPass::add_up(const Operand& operand, const PreparedBatch& batch,
                           const Memory& memory) const {
  const PlacedPlan& plan = batch.plans.of(operand.side);
  add_gradient({reinterpret_cast<const Segment*>(memory.tables + plan.segments), plan.num_segments,
                reinterpret_cast<const std::int64_t*>(memory.tables + plan.sources), plan.rows,
                memory.scratch + batch.packed[operand.port], operand.dtype, heads(operand.side)},
               tensors_[operand.port], at_.stream);
}

void AttentionPass::enqueue(const PreparedBatch& batch, const Memory& memory) const {
  gather(batch, memory);
  at_.graphs.run(batch.shape, sdpa_memory(batch, memory), memory.scratch + batch.workspace,
                 at_.stream);
  distribute(batch, memory);
}

void AttentionPass::clear_keyless(const std::byte* tables) const {
  clear_keyless_rows(reinterpret_cast<const KeylessRows*>(tables + pass_->keyless),
                     pass_->num_keyless, key_.call.q_heads, tensors_[Port::kO],
                     tensors_[Port::kLse], at_.stream);
}

}  // namespace libra::cudnn
