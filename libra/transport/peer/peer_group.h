// Exchange by copy engines between workers that are threads of one process, on one GPU or several.
//
//   auto endpoints = make_peer_group({0, 1}, {});   // worker w on device w
//
// Copies run on streams of their own, beside the kernels, and take no multiprocessors from them.
// Nothing waits on a device for a peer that has not posted yet: a copy is enqueued when both halves
// are there, ordered after both streams' posts by events. So the order of enqueueing is right on a
// single hardware queue too (CUDA_DEVICE_MAX_CONNECTIONS=1).
//
// The price: wait() returns when the peers have posted, which their launching threads do without
// waiting for their devices; a worker that does not post within the deadline fails all. Streams
// must be CudaStreams of the worker's device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/transport/transport.h"

namespace libra {

/// One endpoint per entry of `devices`, by worker; several workers may share a device. Throws
/// ConfigError for a device that is not there or two that cannot reach each other's memory.
std::vector<std::unique_ptr<Transport>> make_peer_group(const std::vector<std::int32_t>& devices,
                                                        const TransportOptions& options);

}  // namespace libra
