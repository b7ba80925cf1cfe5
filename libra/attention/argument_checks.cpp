#include "libra/attention/argument_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>

#include "libra/base/error.h"

namespace libra {
namespace {

struct Named {
  std::string_view name;
  const TensorView* tensor;
};

void check_tensor(const Named& named, DType dtype, std::int32_t dim) {
  const TensorView& tensor = *named.tensor;
  if (tensor.dtype != dtype) {
    throw ConfigError(fmt::format("{} is {}: it must be {}, given the dtype of q", named.name,
                                  dtype_name(tensor.dtype), dtype_name(dtype)));
  }
  if (tensor.dim != dim || dim < 1) {
    throw ConfigError(fmt::format("{} has dim {}: it must be {}", named.name, tensor.dim,
                                  dim < 1 ? "at least 1" : fmt::to_string(dim)));
  }
}

void check_call(const AttentionCall& call) {
  if (call.q_heads < 1 || call.kv_heads < 1 || call.q_heads % call.kv_heads != 0) {
    throw ConfigError(
        fmt::format("{} KV heads with {} query heads: KV heads must divide query heads",
                    call.kv_heads, call.q_heads));
  }
  if (!std::isfinite(call.softmax_scale)) {
    throw ConfigError(fmt::format("softmax scale {} is not finite", call.softmax_scale));
  }
}

// What one entry takes of a tensor along one axis.
struct Span {
  std::string_view axis;
  std::int64_t first;
  std::int64_t count;
};

void check_span(std::size_t entry, const Named& named, const Span& span, std::int64_t available) {
  if (span.first >= 0 && span.count <= available && span.first <= available - span.count) return;
  throw ConfigError(fmt::format("entry {} takes {} {} from {} on: {} has {} of them", entry,
                                span.count, span.axis, span.first, named.name, available));
}

void check_entry(std::size_t index, const Span& rows, const Span& heads,
                 std::initializer_list<Named> tensors) {
  for (const Named& named : tensors) {
    check_span(index, named, rows, named.tensor->rows);
    check_span(index, named, heads, named.tensor->heads);
    if (named.tensor->data == nullptr) {
      throw ConfigError(fmt::format("entry {} needs {}, whose data is null", index, named.name));
    }
  }
}

void check_entries(const AttentionCall& call, std::initializer_list<Named> query_side,
                   std::initializer_list<Named> key_side) {
  for (std::size_t i = 0; i < call.entries.size(); ++i) {
    const Entry& entry = call.entries[i];
    if (entry.queries < 0 || entry.keys < 0) {
      throw ConfigError(fmt::format("entry {} has {} queries and {} keys: neither may be negative",
                                    i, entry.queries, entry.keys));
    }
    if (entry.queries > 0) {
      check_entry(i, {"query rows", entry.q_row, entry.queries},
                  {"query heads", std::int64_t{entry.q_head} + call.q_head_shift, call.q_heads},
                  query_side);
    }
    if (entry.keys > 0) {
      check_entry(i, {"key rows", entry.kv_row, entry.keys},
                  {"KV heads", std::int64_t{entry.kv_head} + call.kv_head_shift, call.kv_heads},
                  key_side);
    }
  }
}

}  // namespace

void check_dtype(std::string_view name, DType dtype, const SupportedDTypes& supported) {
  const std::vector<DType>& dtypes = supported.dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end()) return;
  std::vector<std::string_view> names;
  names.reserve(dtypes.size());
  for (const DType candidate : dtypes) names.push_back(dtype_name(candidate));
  throw ConfigError(fmt::format("{} is {}: {} supports {}", name, dtype_name(dtype),
                                supported.backend, fmt::join(names, ", ")));
}

void check_forward(const AttentionCall& call, const ForwardTensors& t,
                   const SupportedDTypes& supported) {
  const DType storage = t.q.dtype;
  check_dtype("q", storage, supported);
  check_tensor({"q", &t.q}, storage, t.q.dim);
  check_tensor({"k", &t.k}, storage, t.q.dim);
  check_tensor({"v", &t.v}, storage, t.v.dim);
  check_tensor({"o", &t.o}, storage, t.v.dim);
  check_tensor({"lse", &t.lse}, accumulation_dtype(storage), 1);
  check_call(call);
  check_entries(call, {{"q", &t.q}, {"o", &t.o}, {"lse", &t.lse}}, {{"k", &t.k}, {"v", &t.v}});
}

void check_backward(const AttentionCall& call, const BackwardTensors& t,
                    const SupportedDTypes& supported) {
  check_forward(call, {t.q, t.k, t.v, t.o, t.lse}, supported);
  const bool written = call.gradients == Gradients::kWritten;
  const DType gradient = written ? t.q.dtype : accumulation_dtype(t.q.dtype);
  check_tensor({"dO", &t.d_o}, t.q.dtype, t.v.dim);
  check_tensor({"dq", &t.dq}, gradient, t.q.dim);
  check_tensor({"dk", &t.dk}, gradient, t.q.dim);
  check_tensor({"dv", &t.dv}, gradient, t.v.dim);
  check_entries(call, {{"dO", &t.d_o}, {"dq", &t.dq}}, {{"dk", &t.dk}, {"dv", &t.dv}});
}

void check_same_shape(const TensorView& from, const TensorView& to) {
  if (from.rows == to.rows && from.heads == to.heads && from.dim == to.dim) return;
  throw ConfigError(fmt::format("source [{}, {}, {}] and destination [{}, {}, {}] differ in shape",
                                from.rows, from.heads, from.dim, to.rows, to.heads, to.dim));
}

void check_add(const TensorView& from, const TensorView& to) {
  check_same_shape(from, to);
  if (from.dtype == to.dtype && from.dtype == accumulation_dtype(from.dtype)) return;
  throw ConfigError(fmt::format("cannot add {} to {}: both must be fp32, or both fp64",
                                dtype_name(from.dtype), dtype_name(to.dtype)));
}

void check_copy(const StridedView& from, const StridedView& to) {
  if (from.rows == to.rows && from.row_bytes == to.row_bytes) return;
  throw ConfigError(fmt::format("cannot copy {} rows of {} bytes onto {} rows of {} bytes",
                                from.rows, from.row_bytes, to.rows, to.row_bytes));
}

}  // namespace libra
