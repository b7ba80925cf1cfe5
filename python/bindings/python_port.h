// A MessagePort whose messages are sent by a Python object (libra/_port.py):
//
//   send(peer, tag, memoryview) -> work      receive(peer, tag, memoryview) -> work
//   fail(cause)                              first_cause() -> str
//   lost(peer) -> str
//
// where work.wait(timedelta) raises what goes wrong. Takes the interpreter's lock for each call.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "python/bindings/message_port.h"

namespace libra::python {

std::shared_ptr<MessagePort> make_python_port(nanobind::object port);

}  // namespace libra::python
