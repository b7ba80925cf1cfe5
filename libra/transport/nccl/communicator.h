// An NCCL communicator of our own, with a deadline on everything that can wait for others. Private
// to this folder.
#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "libra/transport/nccl/nccl_transport.h"

namespace libra::nccl {

class Communicator {
 public:
  /// Returns when all workers have come here. Throws TransportError at the deadline.
  Communicator(const NcclProcess& process, std::chrono::milliseconds deadline);
  /// Ends the communicator without waiting for anyone.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  ncclComm_t get() const { return comm_; }

  /// For a call that may go on behind its return: waits until it has been done on the host. Throws
  /// TransportError for a failure and at the deadline.
  void finish(ncclResult_t status, const char* call);

  /// What NCCL's own threads have found wrong; empty if nothing.
  std::string async_error() const;

  /// Ends everything in flight on the device. Idempotent; any thread.
  void abort();

 private:
  ncclComm_t comm_ = nullptr;
  std::int32_t worker_;
  std::chrono::milliseconds deadline_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace libra::nccl
