// The parts of the extension module libra._core, each in a source of its own.
//
// Bound here is what Python needs of the rooms, under their own names; words that C++ has as
// enumerators are strings in Python. Tensors come as addresses and strides (tensor_view in
// runtime.cpp): the extension knows nothing of torch and serves every version of it.
#pragma once

#include <nanobind/nanobind.h>

namespace libra::python {

void bind_errors(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_plans(nanobind::module_& module);
void bind_pools(nanobind::module_& module);
void bind_corpus(nanobind::module_& module);
void bind_runtime(nanobind::module_& module);
void bind_sampling(nanobind::module_& module);

}  // namespace libra::python
