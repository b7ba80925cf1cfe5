#include "libra/attention/cudnn/attention_pass.h"

#include <algorithm>

namespace libra::cudnn {
namespace {

constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 30;  // cuDNN's kernels have 32-bit strides

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t total_rows(const BatchShape& bucket, Side side) {
  return side == Side::kQueries ? bucket.total_queries : bucket.total_keys;
}

std::int64_t count_of(const Batch& batch) { return static_cast<std::int64_t>(batch.pieces.size()); }

std::vector<PackedPiece> packed_pieces(const Batch& batch, Side side, const Packing& packing) {
  std::vector<PackedPiece> result;
  result.reserve(batch.pieces.size());
  auto packed = packing.rows.begin();
  for (const Entry& piece : batch.pieces) {
    const PieceRows run = rows_of(piece, side);
    result.push_back({*packed++, run.row, run.rows, run.head});
  }
  std::sort(result.begin(), result.end(),
            [](const PackedPiece& a, const PackedPiece& b) { return a.packed_row < b.packed_row; });
  return result;
}

}  // namespace

AttentionPass::AttentionPass(const AttentionCall& call, const ForwardTensors& t,
                             const Workplace& at)
    : call_(call), pass_(Pass::kForward), at_(at) {
  add(Port::kQ, Role::kInput, Side::kQueries, t.q);
  add(Port::kK, Role::kInput, Side::kKeys, t.k);
  add(Port::kV, Role::kInput, Side::kKeys, t.v);
  add(Port::kO, Role::kOutput, Side::kQueries, t.o);
  add(Port::kLse, Role::kOutput, Side::kQueries, t.lse);
  ForwardPieces pieces = forward_pieces(call);
  pieces_ = std::move(pieces.pieces);
  keyless_ = std::move(pieces.keyless);
}

AttentionPass::AttentionPass(const AttentionCall& call, const BackwardTensors& t,
                             const Workplace& at)
    : call_(call), pass_(Pass::kBackward), at_(at), pieces_(backward_pieces(call)) {
  add(Port::kQ, Role::kInput, Side::kQueries, t.q, !at.deterministic);
  add(Port::kK, Role::kInput, Side::kKeys, t.k);
  add(Port::kV, Role::kInput, Side::kKeys, t.v);
  add(Port::kO, Role::kInput, Side::kQueries, t.o);
  add(Port::kLse, Role::kInput, Side::kQueries, t.lse, true);
  add(Port::kDo, Role::kInput, Side::kQueries, t.d_o);
  add(Port::kDq, Role::kGradient, Side::kQueries, t.dq, true);
  add(Port::kDk, Role::kGradient, Side::kKeys, t.dk, true);
  add(Port::kDv, Role::kGradient, Side::kKeys, t.dv, true);
}

void AttentionPass::add(Port port, Role role, Side side, const TensorView& view, bool packed) {
  const bool wide = std::max(view.row_stride, view.head_stride) >= kMaxStride;
  const DType dtype = role == Role::kGradient ? operands_.front().dtype : view.dtype;
  operands_.push_back({port, role, side, view, dtype, packed || wide});
}

std::int32_t AttentionPass::heads(Side side) const {
  return side == Side::kQueries ? call_.q_heads : call_.kv_heads;
}

// Elements of a packed row.
std::int64_t AttentionPass::packed_row(const Operand& operand) const {
  return std::int64_t{heads(operand.side)} * operand.view.dim;
}

bool AttentionPass::packs(Side side) const {
  return std::any_of(operands_.begin(), operands_.end(), [side](const Operand& operand) {
    return operand.packed && operand.side == side;
  });
}

// Whether the caller's tensor looks like a packed one.
bool AttentionPass::is_dense(const Operand& operand) const {
  return operand.view.row_stride == packed_row(operand) &&
         (operand.view.head_stride == operand.view.dim || heads(operand.side) == 1);
}

SdpaShape AttentionPass::shape_of(Mask mask, const BatchShape& bucket) const {
  SdpaShape shape;
  shape.pass = pass_;
  shape.mask = mask;
  shape.deterministic = pass_ == Pass::kBackward && at_.deterministic;
  shape.q_heads = call_.q_heads;
  shape.kv_heads = call_.kv_heads;
  shape.qk_dim = operands_[0].view.dim;
  shape.v_dim = operands_[2].view.dim;
  shape.entries = bucket.entries;
  shape.max_queries = bucket.max_queries;
  shape.max_keys = bucket.max_keys;
  if (pass_ == Pass::kBackward) {
    shape.total_queries = bucket.total_queries;
    shape.total_keys = bucket.total_keys;
  }
  for (const Operand& operand : operands_) {
    const TensorView& view = operand.view;
    shape.dtypes[operand.port] = operand.dtype;
    shape.strides[operand.port] = operand.packed ? Strides{packed_row(operand), view.dim}
                                                 : Strides{view.row_stride, view.head_stride};
  }
  return shape;
}

BatchRules AttentionPass::rules() const {
  BatchRules rules;
  rules.max_bytes = at_.max_scratch_bytes;
  for (const Operand& operand : operands_) {
    if (!operand.packed) continue;
    const std::int64_t bytes = packed_row(operand) * element_bytes(operand.dtype);
    (operand.side == Side::kQueries ? rules.query_row_bytes : rules.key_row_bytes) += bytes;
  }
  if (pass_ == Pass::kBackward) add_workspace(rules);
  return rules;
}

// What cuDNN asks for in backward: a sum per row, dQ in fp32 (or, if deterministic, the whole dS),
// and with GQA dK and dV of every query head.
void AttentionPass::add_workspace(BatchRules& rules) const {
  rules.q_heads = call_.q_heads;
  rules.kv_heads = call_.kv_heads;
  const std::int64_t q_heads = call_.q_heads;
  const std::int64_t qk_dim = operands_[0].view.dim, v_dim = operands_[2].view.dim;
  rules.query_row_bytes += q_heads * 4;
  if (at_.deterministic) {
    rules.pair_bytes = q_heads * 2;
  } else {
    rules.query_row_bytes += q_heads * qk_dim * 4;
  }
  if (call_.q_heads != call_.kv_heads) rules.key_row_bytes += q_heads * (qk_dim + v_dim) * 4;
}

void AttentionPass::run() {
  const std::vector<Prepared> batches = prepare_all();
  std::byte* const scratch = at_.scratch.reserve(needed_bytes(batches), at_.stream);
  for (const Prepared& batch : batches) enqueue(batch, scratch);
  clear_keyless(keyless_, scratch);
  at_.scratch.done(at_.stream);
}

// A graph's kernels are loaded when it runs for the first time, which may wait for the device. So
// it runs once over entries without rows.
void AttentionPass::rehearse() {
  const std::vector<Prepared> batches = prepare_all();
  std::byte* const scratch = at_.scratch.reserve(needed_bytes(batches), at_.stream);
  for (const Prepared& batch : batches) {
    if (at_.graphs.has_run(batch.shape)) continue;
    const std::vector<std::byte> nothing(batch.tables.bytes().size());
    upload(nothing.data(), scratch, static_cast<std::int64_t>(nothing.size()), at_.stream);
    at_.graphs.run(batch.shape, memory_of(batch, scratch), scratch + batch.workspace, at_.stream);
  }
  at_.scratch.done(at_.stream);
}

std::vector<AttentionPass::Prepared> AttentionPass::prepare_all() {
  std::vector<Prepared> batches;
  for (const Batch& batch : make_batches(std::move(pieces_), rules())) {
    batches.push_back(prepare(batch));
  }
  return batches;
}

std::int64_t AttentionPass::needed_bytes(const std::vector<Prepared>& batches) const {
  auto bytes = static_cast<std::int64_t>(keyless_.size() * sizeof(KeylessRows));
  for (const Prepared& batch : batches) bytes = std::max(bytes, batch.bytes);
  return bytes;
}

void AttentionPass::warm_up(std::int64_t max_rows) {
  const Mask causal = pass_ == Pass::kBackward ? Mask::kTopLeftCausal : Mask::kBottomRightCausal;
  for (const BatchShape& bucket : all_buckets(max_rows, rules())) {
    at_.graphs.prepare(shape_of(causal, bucket));
    at_.graphs.prepare(shape_of(Mask::kFull, bucket));
  }
}

AttentionPass::Prepared AttentionPass::prepare(const Batch& batch) const {
  Prepared result;
  result.shape = shape_of(batch.mask, batch.bucket);
  prepare_packing(batch, result);
  prepare_offsets(batch, result);
  place_packed(batch, result);
  return result;
}

void AttentionPass::prepare_packing(const Batch& batch, Prepared& result) const {
  for (const Side side : {Side::kQueries, Side::kKeys}) {
    if (!packs(side)) continue;
    Packing& packing = result.packing.of(side);
    packing = pack_in_order(batch.pieces, side);
    if (side == Side::kQueries && is_dense(operands_[0])) {
      const std::int64_t room = total_rows(batch.bucket, side);
      if (auto in_place = pack_in_place(batch.pieces, room)) packing = std::move(*in_place);
    }
    result.pieces.of(side) = {result.tables.list(packed_pieces(batch, side, packing)),
                              count_of(batch), packing.total};
    if (pass_ == Pass::kForward) continue;
    const GradientPlan plan = plan_gradients(batch.pieces, side, packing);
    result.plans.of(side) = {result.tables.list(plan.segments), result.tables.list(plan.sources),
                             static_cast<std::int64_t>(plan.segments.size()), plan.rows};
  }
}

void AttentionPass::prepare_offsets(const Batch& batch, Prepared& result) const {
  RaggedTables& tables = result.tables;
  for (const Side side : {Side::kQueries, Side::kKeys}) {
    result.lengths.of(side) = tables.lengths(batch, side);
  }
  for (const Operand& operand : operands_) {
    const Strides strides{operand.view.row_stride, operand.view.head_stride};
    result.offsets[operand.port] =
        operand.packed
            ? tables.packed_offsets(batch, result.packing.of(operand.side), packed_row(operand))
            : tables.offsets(batch, operand.side, strides);
  }
}

void AttentionPass::place_packed(const Batch& batch, Prepared& result) const {
  std::int64_t end = aligned(static_cast<std::int64_t>(result.tables.bytes().size()));
  for (const Operand& operand : operands_) {
    result.packed[operand.port] = end;
    if (!operand.packed) continue;
    end += aligned(total_rows(batch.bucket, operand.side) * packed_row(operand) *
                   element_bytes(operand.dtype));
  }
  result.workspace = end;
  result.bytes = end + at_.graphs.prepare(result.shape);
}

// Where packed row 0 of a tensor lies in the caller's, or null if it must be copied.
const std::byte* AttentionPass::in_place(const Operand& operand, const Prepared& batch) const {
  const std::optional<PieceRows>& origin = batch.packing.of(operand.side).origin;
  if (operand.port != Port::kQ || !origin.has_value()) return nullptr;
  const TensorView& view = operand.view;
  return static_cast<const std::byte*>(view.data) +
         (origin->row * view.row_stride + origin->head * view.head_stride) *
             element_bytes(view.dtype);
}

PackedRows AttentionPass::packed_rows(const Operand& operand, const Prepared& batch,
                                      std::byte* scratch) const {
  const PlacedPieces& placed = batch.pieces.of(operand.side);
  return {reinterpret_cast<const PackedPiece*>(scratch + placed.pieces), placed.count, placed.rows,
          heads(operand.side)};
}

// Where everything is.
SdpaMemory AttentionPass::memory_of(const Prepared& batch, std::byte* scratch) const {
  SdpaMemory memory;
  memory.queries = scratch + batch.lengths.queries;
  memory.keys = scratch + batch.lengths.keys;
  memory.scale = static_cast<float>(call_.softmax_scale);
  for (const Operand& operand : operands_) {
    memory.offsets[operand.port] = scratch + batch.offsets[operand.port];
    memory.tensors[operand.port] = operand.view.data;
    if (!operand.packed) continue;
    const std::byte* const original = in_place(operand, batch);
    memory.tensors[operand.port] =
        original != nullptr ? original : scratch + batch.packed[operand.port];
  }
  return memory;
}

// Copies what must be packed.
void AttentionPass::gather(const Prepared& batch, std::byte* scratch) const {
  for (const Operand& operand : operands_) {
    if (!operand.packed || operand.role != Role::kInput) continue;
    if (in_place(operand, batch) != nullptr) continue;
    pack(packed_rows(operand, batch, scratch), operand.view, scratch + batch.packed[operand.port],
         at_.stream);
  }
}

void AttentionPass::distribute(const Prepared& batch, std::byte* scratch) const {
  for (const Operand& operand : operands_) {
    if (operand.role == Role::kGradient) add_up(operand, batch, scratch);
    if (operand.role == Role::kOutput && operand.packed) {
      unpack(packed_rows(operand, batch, scratch), scratch + batch.packed[operand.port],
             operand.view, at_.stream);
    }
  }
}

void AttentionPass::add_up(const Operand& operand, const Prepared& batch,
                           std::byte* scratch) const {
  const PlacedPlan& plan = batch.plans.of(operand.side);
  add_gradient({reinterpret_cast<const Segment*>(scratch + plan.segments), plan.num_segments,
                reinterpret_cast<const std::int64_t*>(scratch + plan.sources), plan.rows,
                scratch + batch.packed[operand.port], operand.dtype, heads(operand.side)},
               operand.view, at_.stream);
}

void AttentionPass::enqueue(const Prepared& batch, std::byte* scratch) const {
  send(batch.tables, scratch);
  gather(batch, scratch);
  at_.graphs.run(batch.shape, memory_of(batch, scratch), scratch + batch.workspace, at_.stream);
  distribute(batch, scratch);
}

void AttentionPass::send(const RaggedTables& tables, std::byte* scratch) const {
  upload(tables.bytes().data(), scratch, static_cast<std::int64_t>(tables.bytes().size()),
         at_.stream);
}

void AttentionPass::clear_keyless(const std::vector<KeylessRows>& keyless,
                                  std::byte* scratch) const {
  if (keyless.empty()) return;
  RaggedTables tables;
  tables.list(keyless);
  send(tables, scratch);
  clear_keyless_rows(reinterpret_cast<const KeylessRows*>(scratch),
                     static_cast<std::int64_t>(keyless.size()), call_.q_heads, operands_[3].view,
                     operands_[4].view, at_.stream);
}

}  // namespace libra::cudnn
