// Threads that wait for what nothing can end, such as a message that was cut in its middle, until
// its deadline. Nobody needs what they wait for any more, but the interpreter must not end beneath
// them.
#pragma once

#include <thread>

namespace libra::python {

/// The thread owns whatever it uses.
void leave_behind(std::thread thread);

/// Until all are done. Without the interpreter's lock, which they may need.
void await_left_behind();

}  // namespace libra::python
