// Attention whose kernels are a Python object's: what Pool(kernels=...) runs on.
//
//   Kernels kernels(runner);                    // a Runner of libra/_entries.py; holds the lock
//   auto attention = plug_in(kernels, std::move(own), -1, launch);
//
// A decorator. Forward and backward go to the runner, as tensors that look at the caller's memory
// (DLPack, so no torch is linked) and the entries as bytes; all else goes to the backend beneath.
// What Python raises is an Error that says so: a ConfigError if it is one there, or comes while
// the pass gets ready.
//
// Not for passes that are enqueued by one thread and launched by another on a GPU: torch's current
// stream of the launching thread must be the pass's, as it is in libra/_pool.py.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "libra/attention/attention.h"
#include "python/bindings/python_object.h"

namespace libra::python {

/// None: there are none. Shared between threads; each call takes the interpreter's lock.
using Kernels = std::shared_ptr<PythonObject>;

/// Needs the lock.
Kernels kernels_of(nanobind::object runner);

/// Runs the work in the stream's turn: on the stream's own thread, or at once where the work itself
/// enqueues.
using Launch = std::function<void(Stream& stream, std::function<void()> work)>;

/// `own` itself if there are no kernels. `device`: of CUDA; -1: the tensors are the CPU's. Work
/// that `launch` holds must be done before the result goes.
std::unique_ptr<AttentionBackend> plug_in(Kernels kernels, std::unique_ptr<AttentionBackend> own,
                                          std::int32_t device, Launch launch);

}  // namespace libra::python
