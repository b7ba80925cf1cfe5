// An NCCL communicator of our own, with a deadline on everything that can wait for others. Private
// to this folder.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libra/transport/nccl/nccl_transport.h"

namespace libra::nccl {

class Communicator {
 public:
  /// Returns when all workers have come here. Throws TransportError at the deadline or after half a
  /// minute, whichever is later: a start takes NCCL as long as it takes, however short exchanges
  /// are.
  Communicator(const NcclProcess& process, std::chrono::milliseconds deadline);
  /// Ends the communicator without waiting for anyone.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Connects to `peers`, which must all call it: a byte there and back. NCCL connects where two
  /// first meet otherwise, and NCCL 2.28 ends the process if that is aborted. Throws TransportError
  /// as the constructor. A communicator that could not connect is left as it is, to end with the
  /// process; one whose peers do not send is aborted.
  void connect(const std::vector<std::int32_t>& peers);

  ncclComm_t get() const { return comm_; }

  /// For a call that may go on behind its return: waits until it has been done on the host. Throws
  /// TransportError for a failure and at the deadline.
  void finish(ncclResult_t status, const char* call) { finish(status, call, deadline_); }

  /// What NCCL's own threads have found wrong; empty if nothing.
  std::string async_error() const;

  /// Ends everything in flight on the device. Idempotent; any thread.
  void abort();

 private:
  void finish(ncclResult_t status, const char* call, std::chrono::milliseconds limit);
  void exchange_bytes(const std::vector<std::int32_t>& peers, std::byte* bytes,
                      cudaStream_t stream);
  void await(cudaStream_t stream) const;

  ncclComm_t comm_ = nullptr;
  std::int32_t worker_, device_;
  std::chrono::milliseconds deadline_, start_limit_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace libra::nccl
