// What a caller may ask of any backend, checked before anything is enqueued.
//
// Every function throws ConfigError: one line that names the tensor, entry or head count, what is
// wrong with it and what would be right. Rows and heads are checked only where an entry really
// reads or writes them: an entry without keys may come with empty K and V. Not checked: that
// entries do not overlap, and that strides are those of the memory behind a view.
#pragma once

#include <string_view>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/base/strided_view.h"

namespace libra {

/// A backend's name in messages, and the number formats that it computes in.
struct SupportedDTypes {
  std::string_view backend;
  std::vector<DType> dtypes;
};

/// `name` is the tensor's name in the message.
void check_dtype(std::string_view name, DType dtype, const SupportedDTypes& supported);

void check_forward(const AttentionCall& call, const ForwardTensors& tensors,
                   const SupportedDTypes& supported);
void check_backward(const AttentionCall& call, const BackwardTensors& tensors,
                    const SupportedDTypes& supported);

/// Same rows, heads and dim.
void check_same_shape(const TensorView& from, const TensorView& to);

/// check_same_shape, and both of the same accumulation dtype.
void check_add(const TensorView& from, const TensorView& to);

/// Same rows and row_bytes.
void check_copy(const StridedView& from, const StridedView& to);

}  // namespace libra
