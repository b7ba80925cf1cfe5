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

/// A device's stream and nothing else: no failure flag and no clock, which takes a moment of
/// standing still to make. It does not synchronise with the default stream.
class BareStream {
 public:
  explicit BareStream(std::int32_t device);
  /// Waits for what is enqueued. Never throws.
  ~BareStream();
  BareStream(const BareStream&) = delete;
  BareStream& operator=(const BareStream&) = delete;

  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaStream final : public Stream {
 public:
  /// A stream of its own (BareStream).
  explicit CudaStream(std::int32_t device);
  /// `stream` is not owned; it must belong to `device`.
  CudaStream(std::int32_t device, cudaStream_t stream);
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

  CudaStream(std::int32_t device, std::unique_ptr<const BareStream> own);

  std::int32_t device_;
  cudaStream_t stream_ = nullptr;
  std::shared_ptr<StreamFailure> failure_ = std::make_shared<StreamFailure>();
  EventPool events_;
  DeviceClock clock_;
  std::vector<Mark> marks_;
  std::unique_ptr<const BareStream> own_;  // last: it is idle before anything of it goes
};

/// The CUDA stream behind a Stream. Throws ConfigError if it is of another kind.
CudaStream& as_cuda(Stream& stream);

}  // namespace libra
