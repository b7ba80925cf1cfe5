#include "libra/transport/inproc/transport.h"

#include <fmt/format.h>

#include "libra/base/error.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/host_transport.h"
#include "libra/transport/inproc/progress.h"

namespace libra {

std::vector<std::unique_ptr<Transport>> make_inproc_group(std::int32_t workers,
                                                          const TransportOptions& options) {
  if (workers < 1) throw ConfigError(fmt::format("{} workers are too few: at least 1", workers));
  check_options(options);
  const auto hub = std::make_shared<inproc::Hub>(workers, options);
  std::vector<std::unique_ptr<Transport>> endpoints;
  endpoints.reserve(static_cast<std::size_t>(workers));
  for (std::int32_t worker = 0; worker < workers; ++worker) {
    endpoints.push_back(std::make_unique<HostTransport>(
        "inproc", workers, hub->ledger(worker), std::make_shared<inproc::Port>(hub, worker)));
  }
  return endpoints;
}

}  // namespace libra
