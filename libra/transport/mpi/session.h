// Starts and ends MPI in a program whose processes are workers.
//
//   int main(int argc, char** argv) {
//     MpiSession session(&argc, &argv);
//     auto transport = make_mpi_transport(session);     // mpi/transport.h
//     ...
//   }
//
// Threads: construct and destroy it on the same thread. The level is MPI_THREAD_SERIALIZED: while a
// transport is alive its own thread makes all MPI calls, and the program must make none.
#pragma once

#include <cstdint>
#include <memory>

namespace libra {

namespace mpi {
struct SessionState;
}

class MpiSession {
 public:
  /// Throws TransportError if MPI has been started before, or offers less than
  /// MPI_THREAD_SERIALIZED.
  MpiSession(int* argc, char*** argv);

  /// Ends MPI together with the other ranks. After a failed exchange it waits two seconds for them
  /// to come here too; otherwise MPI stays open, and the launcher ends the job once this process
  /// has ended. Requires that the transport is gone.
  ~MpiSession();

  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  std::int32_t rank() const;  ///< this process's worker, [0, size())
  std::int32_t size() const;

  /// Ends the whole job at once with this exit code; does not return. For a program that has
  /// reported an error which its peers may not have seen.
  [[noreturn]] void end_job(int exit_code);

  const std::shared_ptr<mpi::SessionState>& state() const { return state_; }

 private:
  std::shared_ptr<mpi::SessionState> state_;
};

}  // namespace libra
