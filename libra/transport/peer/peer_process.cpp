#include "libra/transport/peer/peer_process.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/cuda/device.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/peer/process_transport.h"

namespace libra {

std::unique_ptr<Transport> make_peer_process(const PeerProcess& process,
                                             const TransportOptions& options) {
  check_options(options);
  if (process.workers < 1 || process.worker < 0 || process.worker >= process.workers) {
    throw ConfigError(
        fmt::format("worker {} of {}: workers count from 0 to one less than their "
                    "number",
                    process.worker, process.workers));
  }
  if (process.device < 0 || process.device >= device_count()) {
    throw ConfigError(fmt::format("device {} is not there: this process can use {}", process.device,
                                  device_count()));
  }
  const DeviceGuard guard(process.device);
  return std::make_unique<peer::ProcessTransport>(process, options);
}

}  // namespace libra
