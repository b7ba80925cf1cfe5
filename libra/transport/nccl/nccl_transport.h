// Exchange over NCCL, with a communicator of its own: for what crosses nodes. Inside a node copy
// engines are faster and take no multiprocessors from attention (transport/peer).
//
//   NcclId id = make_nccl_id();                       // on one worker, then sent to all
//   auto transport = make_nccl_transport({id, worker, workers, device}, {});
//
// All transfers of a tag begin together, as one group, in the order of posting, which must be the
// same on every worker. Rows with gaps are packed into staging memory and unpacked from it, a
// contiguous block per peer; the staging grows to the largest exchange and stays.
//
// Failure: a watchdog thread aborts the communicator at the deadline, or when NCCL reports an
// error. Streams must be CudaStreams of `device`; a GPU can have one worker only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libra/transport/transport.h"

namespace libra {

using NcclId = std::array<std::byte, 128>;

/// Throws TransportError if NCCL cannot start.
NcclId make_nccl_id();

struct NcclProcess {
  NcclId id{};
  std::int32_t worker = 0;
  std::int32_t workers = 1;
  std::int32_t device = 0;
  /// Whom it will exchange with, which must hold both ways; empty: all others. Connected at once.
  std::vector<std::int32_t> peers{};
};

/// Returns when all workers have come here and peers are connected. Throws TransportError if one
/// does not come within the deadline or half a minute, whichever is longer, ConfigError for a peer
/// that is no other worker.
std::unique_ptr<Transport> make_nccl_transport(const NcclProcess& process,
                                               const TransportOptions& options);

/// One endpoint per entry of `devices`, by worker, for threads of this process. Throws ConfigError
/// for a device that is not there or is given twice.
std::vector<std::unique_ptr<Transport>> make_nccl_group(const std::vector<std::int32_t>& devices,
                                                        const TransportOptions& options);

}  // namespace libra
