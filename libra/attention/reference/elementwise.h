// The small tensor operations that the runtime needs besides attention, on the calling thread.
//
// Requires arguments that checks.h accepts.
#pragma once

#include "libra/attention/attention.h"
#include "libra/base/strided_view.h"

namespace libra::reference {

void run_copy(const StridedView& from, const StridedView& to);
void run_fill(const TensorView& tensor, double value);
void run_add(const TensorView& from, const TensorView& to);
void run_convert(const TensorView& from, const TensorView& to);

}  // namespace libra::reference
