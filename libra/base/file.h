// Whole files as strings.
#pragma once

#include <string>

namespace libra {

/// All bytes of a file or pipe; `what` it is to hold, for errors: "a plan". Throws InputError for a
/// folder, a device (which may have no end) and what cannot be read.
std::string read_file(const std::string& path, const std::string& what);

}  // namespace libra
