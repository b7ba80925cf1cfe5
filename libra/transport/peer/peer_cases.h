// What workers that exchange by copy engines must do, as cases that each runs against its own
// endpoint: threads of one process and processes alike. With integers: what arrives is exactly
// what was sent.
//
// The general suite (../conformance) works on host memory and host streams; these cases are its
// counterpart for transports whose streams are CUDA's, where one end of a transfer lies in an
// arena.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libra/cuda/cuda_stream.h"
#include "libra/transport/transport.h"

namespace libra::peer {

/// One worker's part in a case. `transport` is owned so that a case can destroy it.
struct Player {
  std::unique_ptr<Transport> transport;
  CudaStream& stream;
  std::uint64_t seed;  ///< the same on all workers
};

struct PeerCase {
  const char* name;
  void (*run)(Player&);
  std::int32_t min_workers = 1;
  /// 0: the case ends well, and a worker that waits in vain waits for long.
  std::chrono::milliseconds deadline{0};

  TransportOptions options() const;
};

const std::vector<PeerCase>& peer_cases();

/// Names the index-th case with so many workers.
std::string label(std::size_t index, std::int32_t workers);

/// Runs this worker's part; what went wrong, empty if nothing did. Returns at once where the group
/// is too small for the case.
std::string play(const PeerCase& test, std::unique_ptr<Transport> transport, std::int32_t device,
                 std::uint64_t seed);

}  // namespace libra::peer
