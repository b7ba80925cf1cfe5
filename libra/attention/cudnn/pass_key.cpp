#include "libra/attention/cudnn/pass_key.h"

#include <algorithm>
#include <limits>

namespace libra::cudnn {
namespace {

constexpr std::size_t kSamples = 16;                       // of a list of entries
constexpr std::uintptr_t kUsualStep = 256, kLseStep = 16;  // bytes

void mix(std::size_t& hash, std::int64_t value) {
  constexpr std::size_t kOdd = 0x9e3779b97f4a7c15;
  hash = (hash ^ static_cast<std::size_t>(value)) * kOdd;
  hash ^= hash >> 32U;
}

struct FirstHeads {
  std::int32_t q = 0, kv = 0;
};

// Of all entries, without the call's shift. Entries may count heads from below 0.
FirstHeads first_heads(const AttentionCall& call) {
  constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
  FirstHeads first{kNone, kNone};
  for (const Entry& entry : call.entries) {
    if (entry.queries > 0) first.q = std::min(first.q, entry.q_head);
    if (entry.keys > 0) first.kv = std::min(first.kv, entry.kv_head);
  }
  return {first.q == kNone ? 0 : first.q, first.kv == kNone ? 0 : first.kv};
}

// Of a tensor that no entry reads or writes the data may be null.
TensorView from_head(TensorView tensor, std::int32_t head) {
  if (tensor.data == nullptr || head == 0) return tensor;
  tensor.data = static_cast<std::byte*>(tensor.data) +
                head * tensor.head_stride * element_bytes(tensor.dtype);
  tensor.heads -= head;
  return tensor;
}

std::int64_t lead_of(const TensorView& tensor) {
  const std::uintptr_t step = tensor.dim == 1 ? kLseStep : kUsualStep;
  const auto bytes = reinterpret_cast<std::uintptr_t>(tensor.data) % step;
  return static_cast<std::int64_t>(bytes) / element_bytes(tensor.dtype);
}

}  // namespace

std::size_t PassKeyHash::operator()(const PassKey& key) const {
  std::size_t hash = 0;
  const std::vector<Entry>& entries = key.call.entries;
  mix(hash, std::ssize(entries));
  mix(hash, key.pass == Pass::kForward ? key.call.q_heads : -key.call.q_heads);
  mix(hash, key.layouts[Port::kQ].strides.row);
  mix(hash, key.layouts[Port::kK].strides.row);
  const std::size_t step = std::max<std::size_t>(entries.size() / kSamples, 1);
  for (std::size_t i = 0; i < entries.size(); i += step) {
    for (const std::int64_t value : {entries[i].q_row, entries[i].queries, entries[i].kv_row,
                                     entries[i].keys, std::int64_t{entries[i].q_head}}) {
      mix(hash, value);
    }
  }
  return hash;
}

PassTensors tensors_of(const AttentionCall& call, const ForwardTensors& tensors) {
  const FirstHeads first = first_heads(call);
  const std::int32_t q = first.q + call.q_head_shift, kv = first.kv + call.kv_head_shift;
  PassTensors result;
  result[Port::kQ] = from_head(tensors.q, q);
  result[Port::kK] = from_head(tensors.k, kv);
  result[Port::kV] = from_head(tensors.v, kv);
  result[Port::kO] = from_head(tensors.o, q);
  result[Port::kLse] = from_head(tensors.lse, q);
  return result;
}

PassTensors tensors_of(const AttentionCall& call, const BackwardTensors& tensors) {
  const FirstHeads first = first_heads(call);
  const std::int32_t q = first.q + call.q_head_shift, kv = first.kv + call.kv_head_shift;
  PassTensors result =
      tensors_of(call, ForwardTensors{tensors.q, tensors.k, tensors.v, tensors.o, tensors.lse});
  result[Port::kDo] = from_head(tensors.d_o, q);
  result[Port::kDq] = from_head(tensors.dq, q);
  result[Port::kDk] = from_head(tensors.dk, kv);
  result[Port::kDv] = from_head(tensors.dv, kv);
  return result;
}

PassKey key_of(Pass pass, const AttentionCall& call, const PassTensors& tensors) {
  PassKey key;
  key.pass = pass;
  key.call = call;
  key.call.q_head_shift = key.call.kv_head_shift = 0;
  key.call.softmax_scale = 1;
  if (pass == Pass::kForward) key.call.gradients = Gradients::kAdded;  // has none
  const FirstHeads first = first_heads(call);
  for (Entry& entry : key.call.entries) {
    entry.q_head = entry.queries > 0 ? entry.q_head - first.q : 0;
    entry.kv_head = entry.keys > 0 ? entry.kv_head - first.kv : 0;
  }
  for (std::size_t i = 0; i < kNumPorts; ++i) {
    const auto port = static_cast<Port>(i);
    const TensorView& tensor = tensors[port];
    key.layouts[port] = {
        tensor.dtype, tensor.dim, {tensor.row_stride, tensor.head_stride}, lead_of(tensor)};
  }
  return key;
}

}  // namespace libra::cudnn
