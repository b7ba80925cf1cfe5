// The `libra` program as a function, so that tests can call it without a process.
//
//   int code = run_cli({"plan", "--corpus", "mix.npy", ...}, {std::cout, std::cerr});
//
// Errors come as one line on `err`: libra: error: what, where, what would be right.
#pragma once

#include <string>
#include <vector>

#include "libra/cli/command.h"
#include "libra/cli/console.h"

namespace libra::cli {

/// `arguments`: without the program's name. Returns an ExitCode; never throws. `run
/// --transport mpi` starts MPI unless the console has a job already; then only rank 0 writes to the
/// console, and an error ends the whole job.
int run_cli(const std::vector<std::string>& arguments, const Console& console);

}  // namespace libra::cli
