// A pool's worker on one GPU of this process, exchanging with processes of the same host: what
// libra.Pool uses for CUDA tensors. Built where CUDA and cuDNN are, else refused
// (device_site_absent.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "python/bindings/pool_worker.h"

namespace libra::python {

struct DevicePlace {
  std::string pool;  ///< the same on all its workers, unlike any other's on this host
  std::int32_t worker = 0;
  std::int32_t workers = 1;
  std::int32_t device = 0;
  bool one_queue = true;  ///< as PeerProcess::one_queue
};

/// Collective of the pool. Throws ConfigError if this build has no CUDA or the device is not there,
/// and what make_peer_process throws.
std::unique_ptr<Site> make_device_site(const DevicePlace& place, const TransportOptions& options);

}  // namespace libra::python
