#include "libra/attention/cudnn/pass_key.h"

#include <algorithm>

namespace libra::cudnn {
namespace {

constexpr std::size_t kSamples = 16;  // of a list of entries
constexpr std::uintptr_t kAddressStep = 16;

void mix(std::size_t& hash, std::int64_t value) {
  constexpr std::size_t kOdd = 0x9e3779b97f4a7c15;
  hash = (hash ^ static_cast<std::size_t>(value)) * kOdd;
  hash ^= hash >> 32U;
}

// Of a tensor that no entry reads or writes the data may be null.
TensorView shifted(TensorView tensor, std::int32_t heads) {
  if (tensor.data == nullptr || heads == 0) return tensor;
  tensor.data = static_cast<std::byte*>(tensor.data) +
                heads * tensor.head_stride * element_bytes(tensor.dtype);
  tensor.heads -= heads;
  return tensor;
}

std::int64_t lead_of(const TensorView& tensor) {
  const auto bytes = reinterpret_cast<std::uintptr_t>(tensor.data) % kAddressStep;
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
  PassTensors result;
  result[Port::kQ] = shifted(tensors.q, call.q_head_shift);
  result[Port::kK] = shifted(tensors.k, call.kv_head_shift);
  result[Port::kV] = shifted(tensors.v, call.kv_head_shift);
  result[Port::kO] = shifted(tensors.o, call.q_head_shift);
  result[Port::kLse] = shifted(tensors.lse, call.q_head_shift);
  return result;
}

PassTensors tensors_of(const AttentionCall& call, const BackwardTensors& tensors) {
  PassTensors result =
      tensors_of(call, ForwardTensors{tensors.q, tensors.k, tensors.v, tensors.o, tensors.lse});
  result[Port::kDo] = shifted(tensors.d_o, call.q_head_shift);
  result[Port::kDq] = shifted(tensors.dq, call.q_head_shift);
  result[Port::kDk] = shifted(tensors.dk, call.kv_head_shift);
  result[Port::kDv] = shifted(tensors.dv, call.kv_head_shift);
  return result;
}

PassKey key_of(Pass pass, const AttentionCall& call, const PassTensors& tensors) {
  PassKey key;
  key.pass = pass;
  key.call = call;
  key.call.q_head_shift = key.call.kv_head_shift = 0;
  for (std::size_t i = 0; i < kNumPorts; ++i) {
    const auto port = static_cast<Port>(i);
    const TensorView& tensor = tensors[port];
    key.layouts[port] = {
        tensor.dtype, tensor.dim, {tensor.row_stride, tensor.head_stride}, lead_of(tensor)};
  }
  return key;
}

}  // namespace libra::cudnn
