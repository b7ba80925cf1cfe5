// This process as one rank of an MPI job. A program built without MPI has the same functions, which
// then say so.
#pragma once

#include <cstdint>
#include <memory>

#include "libra/cli/executor.h"

namespace libra::cli {

class MpiJob {
 public:
  virtual ~MpiJob() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;

  /// Ends the processes of all ranks at once with this exit code; does not return.
  virtual void end(int exit_code) = 0;

  /// Runs plans with each rank as a worker. Throws ConfigError if there is another number of ranks.
  virtual std::unique_ptr<Executor> make_executor(std::int32_t workers,
                                                  std::chrono::milliseconds deadline) = 0;
};

/// Once per process. Throws ConfigError if the program was built without MPI, TransportError if MPI
/// cannot be started.
std::unique_ptr<MpiJob> start_mpi_job();

}  // namespace libra::cli
