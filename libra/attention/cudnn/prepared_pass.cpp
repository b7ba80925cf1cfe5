#include "libra/attention/cudnn/prepared_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "libra/attention/cudnn/gradient_plan.h"
#include "libra/attention/cudnn/kernels.h"
#include "libra/attention/cudnn/pieces.h"
#include "libra/attention/cudnn/scratch.h"
#include "libra/base/error.h"
#include "libra/base/units.h"

namespace libra::cudnn {
namespace {

constexpr std::int64_t kMaxStride = std::int64_t{1} << 30;  // cuDNN's kernels have 32-bit strides

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

// Whether the entry is one piece in which every row takes part.
bool is_one_piece(const Entry& entry) {
  if (entry.queries == 0 || entry.keys == 0) return false;
  return entry.mask == Mask::kFull || entry.queries == entry.keys;
}

bool have_one_head(const std::vector<Entry>& entries) {
  return std::all_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.q_head == entries.front().q_head && entry.kv_head == entries.front().kv_head;
  });
}

// The rules of one pass: which tensors are packed, what batches may hold, which graph they need.
class PassRules {
 public:
  PassRules(const PassKey& key, const PassOptions& options)
      : key_(key),
        options_(options),
        writes_(key.call.gradients == Gradients::kWritten),
        lies_in_place_(writes_ && have_one_head(key.call.entries)) {
    const bool backward = key.pass == Pass::kBackward;
    add(Port::kQ, Role::kInput, Side::kQueries, backward && !options.deterministic);
    add(Port::kK, Role::kInput, Side::kKeys);
    add(Port::kV, Role::kInput, Side::kKeys);
    const Role result = backward ? Role::kInput : Role::kOutput;
    add(Port::kO, result, Side::kQueries);
    add(Port::kLse, result, Side::kQueries, backward);
    if (backward) add_gradients();
  }

  const std::vector<Operand>& operands() const { return operands_; }

  const TensorLayout& layout(Port port) const { return key_.layouts[port]; }

  std::int32_t heads(Side side) const {
    return side == Side::kQueries ? key_.call.q_heads : key_.call.kv_heads;
  }

  // Elements of a packed row.
  std::int64_t packed_row(const Operand& operand) const {
    return std::int64_t{heads(operand.side)} * layout(operand.port).dim;
  }

  bool packs(Side side) const {
    return std::any_of(operands_.begin(), operands_.end(), [side](const Operand& operand) {
      return operand.packed && operand.side == side;
    });
  }

  bool adds() const { return key_.pass == Pass::kBackward && !writes_; }

  // Whether a tensor may be packed where it lies, if its rows allow it.
  bool may_lie_in_place(const Operand& operand) const {
    if (!operand.packed || !is_dense(operand)) return false;
    if (operand.port == Port::kQ) return true;
    const bool written = operand.role == Role::kOutput && key_.pass == Pass::kBackward;
    return written && (operand.side == Side::kKeys || may_lie_in_place(operands_.front()));
  }

  bool may_lie_in_place(Side side) const {
    return std::any_of(operands_.begin(), operands_.end(), [&](const Operand& operand) {
      return operand.side == side && may_lie_in_place(operand);
    });
  }

  SdpaShape shape_of(Mask mask, const BatchShape& bucket) const {
    SdpaShape shape;
    shape.pass = key_.pass;
    shape.mask = mask;
    shape.deterministic = key_.pass == Pass::kBackward && options_.deterministic;
    shape.q_heads = key_.call.q_heads;
    shape.kv_heads = key_.call.kv_heads;
    shape.qk_dim = layout(Port::kQ).dim;
    shape.v_dim = layout(Port::kV).dim;
    shape.entries = bucket.entries;
    shape.max_queries = bucket.max_queries;
    shape.max_keys = bucket.max_keys;
    if (key_.pass == Pass::kBackward) {
      shape.total_queries = bucket.total_queries;
      shape.total_keys = bucket.total_keys;
    }
    for (const Operand& operand : operands_) {
      shape.dtypes[operand.port] = operand.dtype;
      shape.strides[operand.port] = operand.packed
                                        ? Strides{packed_row(operand), layout(operand.port).dim}
                                        : layout(operand.port).strides;
    }
    return shape;
  }

  BatchRules batch_rules() const {
    BatchRules rules;
    rules.max_bytes = options_.max_scratch_bytes;
    rules.by_rows = writes_;
    for (const Operand& operand : operands_) {
      if (!operand.packed || (lies_in_place_ && may_lie_in_place(operand))) continue;
      const std::int64_t bytes = packed_row(operand) * element_bytes(operand.dtype);
      (operand.side == Side::kQueries ? rules.query_row_bytes : rules.key_row_bytes) += bytes;
    }
    if (key_.pass == Pass::kBackward) add_workspace(rules);
    return rules;
  }

 private:
  void add(Port port, Role role, Side side, bool packed = false) {
    const TensorLayout& tensor = layout(port);
    const bool wide = std::max(tensor.strides.row, tensor.strides.head) >= kMaxStride;
    const DType dtype = role == Role::kAdded ? layout(Port::kQ).dtype : tensor.dtype;
    operands_.push_back({port, role, side, dtype, packed || wide});
  }

  void add_gradients() {
    add(Port::kDo, Role::kInput, Side::kQueries);
    const Role gradient = writes_ ? Role::kOutput : Role::kAdded;
    add(Port::kDq, gradient, Side::kQueries, true);
    add(Port::kDk, gradient, Side::kKeys, true);
    add(Port::kDv, gradient, Side::kKeys, true);
  }

  // What cuDNN asks for in backward: a sum per row, dQ in fp32 (or, if deterministic, the whole
  // dS), and with GQA dK and dV of every query head.
  void add_workspace(BatchRules& rules) const {
    rules.q_heads = key_.call.q_heads;
    rules.kv_heads = key_.call.kv_heads;
    const std::int64_t q_heads = key_.call.q_heads;
    const std::int64_t qk_dim = layout(Port::kQ).dim, v_dim = layout(Port::kV).dim;
    rules.query_row_bytes += q_heads * 4;
    if (options_.deterministic) {
      rules.pair_bytes = q_heads * 2;
    } else {
      rules.query_row_bytes += q_heads * qk_dim * 4;
    }
    if (rules.q_heads != rules.kv_heads) rules.key_row_bytes += q_heads * (qk_dim + v_dim) * 4;
  }

  // Whether the caller's tensor looks like a packed one.
  bool is_dense(const Operand& operand) const {
    const TensorLayout& tensor = layout(operand.port);
    return tensor.strides.row == packed_row(operand) &&
           (tensor.strides.head == tensor.dim || heads(operand.side) == 1);
  }

  const PassKey& key_;
  const PassOptions& options_;
  bool writes_;
  bool lies_in_place_;  // what may, does: batches by rows see to it
  std::vector<Operand> operands_;
};

// The first entry whose gradients cannot be written, or the end.
auto find_sum(const PassKey& key, const PassOptions& options) {
  const BatchRules rules = PassRules(key, options).batch_rules();
  const std::vector<Entry>& entries = key.call.entries;
  return std::find_if_not(entries.begin(), entries.end(), [&rules](const Entry& entry) {
    return is_one_piece(entry) && fits_uncut(entry, rules);
  });
}

// Parts of an entry would be written over each other.
void check_gradients(const PassKey& key, const PassOptions& options) {
  if (key.pass == Pass::kForward || key.call.gradients == Gradients::kAdded) return;
  const auto sum = find_sum(key, options);
  if (sum == key.call.entries.end()) return;
  throw ConfigError(
      fmt::format("entry {} has {} queries and {} keys, whose gradients are no single result of "
                  "cuDNN's within {} of scratch memory: have them added where can_write() is false",
                  sum - key.call.entries.begin(), sum->queries, sum->keys,
                  format_bytes(options.max_scratch_bytes)));
}

// One batch's tables and places.
class BatchPreparer {
 public:
  BatchPreparer(const PassRules& rules, const Batch& batch) : rules_(rules), batch_(batch) {}

  PreparedBatch prepare(DeviceGraphs& graphs, std::vector<std::byte>& all_tables) {
    result_.shape = rules_.shape_of(batch_.mask, batch_.bucket);
    for (const Side side : {Side::kQueries, Side::kKeys}) {
      if (rules_.packs(side)) pack(side);
      result_.lengths.of(side) = tables_.lengths(batch_, side);
    }
    for (const Operand& operand : rules_.operands()) place_offsets(operand);
    place_packed();
    result_.bytes = result_.workspace + graphs.prepare(result_.shape);
    result_.tables = std::ssize(all_tables);
    result_.table_bytes = std::ssize(tables_.bytes());
    all_tables.insert(all_tables.end(), tables_.bytes().begin(), tables_.bytes().end());
    return result_;
  }

 private:
  void pack(Side side) {
    Packing& packing = packing_.of(side);
    packing = pack_in_order(batch_.pieces, side);
    if (rules_.may_lie_in_place(side)) pack_in_place(side, packing);
    result_.pieces.of(side) = {tables_.list(packed_pieces(batch_, side, packing)), count_of(batch_),
                               packing.total};
    if (!rules_.adds()) return;
    const GradientPlan plan = plan_gradients(batch_.pieces, side, packing);
    result_.plans.of(side) = {tables_.list(plan.segments), tables_.list(plan.sources),
                              static_cast<std::int64_t>(plan.segments.size()), plan.rows};
  }

  void pack_in_place(Side side, Packing& packing) {
    auto in_place = cudnn::pack_in_place(batch_.pieces, side, total_rows(batch_.bucket, side));
    if (!in_place.has_value()) return;
    packing = std::move(*in_place);
    result_.origin.of(side) = *packing.origin;
    for (const Operand& operand : rules_.operands()) {
      if (operand.side != side) continue;
      result_.in_place[operand.port] = rules_.may_lie_in_place(operand);
    }
  }

  void place_offsets(const Operand& operand) {
    result_.offsets[operand.port] =
        operand.packed
            ? tables_.packed_offsets(batch_, packing_.of(operand.side), rules_.packed_row(operand))
            : tables_.offsets(batch_, operand.side, rules_.layout(operand.port));
  }

  void place_packed() {
    std::int64_t end = 0;
    for (const Operand& operand : rules_.operands()) {
      result_.packed[operand.port] = end;
      if (!operand.packed || result_.in_place[operand.port]) continue;
      end += aligned(total_rows(batch_.bucket, operand.side) * rules_.packed_row(operand) *
                     element_bytes(operand.dtype));
    }
    result_.workspace = end;
  }

  const PassRules& rules_;
  const Batch& batch_;
  RaggedTables tables_;
  PerSide<Packing> packing_;
  PreparedBatch result_;
};

}  // namespace

PreparedPass prepare_pass(const PassKey& key, const PassOptions& options, DeviceGraphs& graphs) {
  const PassRules rules(key, options);
  check_gradients(key, options);
  ForwardPieces pieces;
  if (key.pass == Pass::kForward) {
    pieces = forward_pieces(key.call);
  } else {
    pieces.pieces = backward_pieces(key.call);
  }
  PreparedPass result;
  result.operands = rules.operands();
  for (const Batch& batch : make_batches(std::move(pieces.pieces), rules.batch_rules())) {
    result.batches.push_back(BatchPreparer(rules, batch).prepare(graphs, result.tables));
    result.scratch_bytes = std::max(result.scratch_bytes, result.batches.back().bytes);
  }
  RaggedTables keyless;
  keyless.list(pieces.keyless);
  result.keyless = std::ssize(result.tables);
  result.num_keyless = std::ssize(pieces.keyless);
  result.tables.insert(result.tables.end(), keyless.bytes().begin(), keyless.bytes().end());
  return result;
}

bool can_write(const PassKey& key, const PassOptions& options) {
  return find_sum(key, options) == key.call.entries.end();
}

void build_graphs(const PassKey& key, const PassOptions& options, std::int64_t max_rows,
                  DeviceGraphs& graphs) {
  const PassRules rules(key, options);
  const Mask causal = key.pass == Pass::kBackward ? Mask::kTopLeftCausal : Mask::kBottomRightCausal;
  for (const BatchShape& bucket : all_buckets(max_rows, rules.batch_rules())) {
    graphs.prepare(rules.shape_of(causal, bucket));
    graphs.prepare(rules.shape_of(Mask::kFull, bucket));
  }
}

}  // namespace libra::cudnn
