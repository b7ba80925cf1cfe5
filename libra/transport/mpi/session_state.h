// What a session and its transports know of each other. Private to this folder.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace libra::mpi {

struct SessionState {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  MPI_Comm farewell = MPI_COMM_NULL;        ///< for the barrier of an orderly end
  std::atomic<bool> has_transport = false;  ///< one at a time
  std::atomic<bool> failed = false;         ///< an exchange has failed
  std::atomic<bool> abandoned = false;      ///< requests are left: no further MPI call is safe
};

/// Throws TransportError with MPI's own words if `code` is an error; `doing` names the call.
void check_mpi(int code, std::string_view doing);

}  // namespace libra::mpi
