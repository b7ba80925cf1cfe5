#include "libra/transport/mpi/session.h"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "libra/base/error.h"
#include "libra/transport/mpi/session_state.h"

namespace libra {
namespace mpi {

void check_mpi(int code, std::string_view doing) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw TransportError(fmt::format("{} failed: {}", doing, text.data()));
}

namespace {

constexpr std::chrono::seconds kFarewell{2};

/// Whether every rank has come to its end within the time that we grant them.
bool all_have_come(MPI_Comm farewell) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(farewell, &request) != MPI_SUCCESS) return false;
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  int done = 0;
  while (done == 0 && std::chrono::steady_clock::now() < end) {
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done != 0;
}

}  // namespace
}  // namespace mpi

MpiSession::MpiSession(int* argc, char*** argv) : state_(std::make_shared<mpi::SessionState>()) {
  int started = 0;
  MPI_Initialized(&started);
  if (started != 0) throw TransportError("MPI has been started before: a program has one session");
  int level = MPI_THREAD_SINGLE;
  mpi::check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level), "starting MPI");
  if (level < MPI_THREAD_SERIALIZED)
    throw TransportError("this MPI lets only one thread call it: MPI_THREAD_SERIALIZED is needed");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  mpi::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &state_->rank), "asking for the rank");
  mpi::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &state_->size), "asking for the size");
  mpi::check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &state_->farewell), "duplicating the communicator");
}

MpiSession::~MpiSession() {
  if (state_->abandoned) return;
  if (state_->failed && !mpi::all_have_come(state_->farewell)) return;
  MPI_Finalize();
}

std::int32_t MpiSession::rank() const { return state_->rank; }
std::int32_t MpiSession::size() const { return state_->size; }

void MpiSession::end_job(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

}  // namespace libra
