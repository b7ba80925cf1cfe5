// A CUDA stream as a libra::Stream: own, or borrowed from the caller's framework.
//
//   CudaStream stream(0);                       // a stream of device 0
//   CudaStream borrowed(0, torch_stream);       // lives at most as long as torch's
//   backend.forward(call, tensors, stream);     // backends take get() from it
//   stream.synchronize();                       // throws what made the stream fail
//
// Failure: see stream_failure.h. Threads: one launching thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "libra/base/stream.h"
#include "libra/cuda/device_clock.h"
#include "libra/cuda/stream_failure.h"

namespace libra {

class CudaStream final : public Stream {
 public:
  /// A stream of its own, which does not synchronise with the default stream.
  explicit CudaStream(std::int32_t device);
  /// `stream` is not owned; it must belong to `device`.
  CudaStream(std::int32_t device, cudaStream_t stream);
  /// Waits for what is enqueued on an own stream. Never throws.
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  std::int32_t device() const { return device_; }
  cudaStream_t get() const { return stream_; }
  const std::shared_ptr<StreamFailure>& failure() const { return failure_; }

  /// Timestamps have no CPU time.
  void mark(Timestamp* out) override;
  void synchronize() override;

 private:
  struct Mark {
    cudaEvent_t event;
    Timestamp* out;
  };

  std::int32_t device_;
  cudaStream_t stream_ = nullptr;
  bool owned_;
  std::shared_ptr<StreamFailure> failure_ = std::make_shared<StreamFailure>();
  EventPool events_;
  DeviceClock clock_;
  std::vector<Mark> marks_;
};

/// The CUDA stream behind a Stream. Throws ConfigError if it is of another kind.
CudaStream& as_cuda(Stream& stream);

}  // namespace libra
