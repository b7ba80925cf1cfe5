// A pool's worker on one GPU of this process, exchanging with processes of the same host by copy
// engines and with those of other hosts over NCCL: what libra.Pool uses for CUDA tensors. Built
// where CUDA and cuDNN are, else refused (device_site_absent.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "python/bindings/pool_worker.h"

namespace libra::python {

struct DevicePlace {
  std::string pool;  ///< the same on all its workers, unlike any other's on this host
  std::int32_t worker = 0;
  std::int32_t workers = 1;
  std::int32_t device = 0;
  bool one_queue = true;  ///< as PeerProcess::one_queue
  /// Workers that copy engines reach, this one among them, in order: the same for all of a host.
  /// Empty: all goes over NCCL.
  std::vector<std::int32_t> near;
  std::string nccl_id;  ///< of new_nccl_id, the same on all workers; empty: near are all workers
};

/// Throws ConfigError if this build has no NCCL.
std::string new_nccl_id();

/// Collective of the pool. `kernels`: instead of cuDNN's, unless null. Throws ConfigError if this
/// build has no CUDA or not the NCCL that is needed, or the device is not there, and what
/// make_peer_process and make_nccl_transport throw.
std::unique_ptr<Site> make_device_site(const DevicePlace& place, const TransportOptions& options,
                                       const Kernels& kernels);

}  // namespace libra::python
