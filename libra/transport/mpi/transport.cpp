#include "libra/transport/mpi/transport.h"

#include "libra/base/error.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/host_transport.h"
#include "libra/transport/mpi/progress.h"
#include "libra/transport/mpi/session_state.h"

namespace libra {

std::unique_ptr<Transport> make_mpi_transport(const MpiSession& session,
                                              const TransportOptions& options) {
  check_options(options);
  const std::shared_ptr<mpi::SessionState>& state = session.state();
  if (state->abandoned)
    throw TransportError("an earlier exchange failed and left MPI unusable: start a new job");
  if (state->has_transport)
    throw ConfigError("this process has an MPI transport already: destroy it first");
  auto ledger = std::make_shared<Ledger>(state->rank, options);
  auto progress = std::make_shared<mpi::Progress>(state, ledger, options);
  return std::make_unique<HostTransport>("mpi", state->size, std::move(ledger),
                                         std::move(progress));
}

}  // namespace libra
