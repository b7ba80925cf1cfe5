// Device memory that one backend's calls use one after the other.
//
// It is allocated and freed in stream order, so growing neither waits nor disturbs what runs; it
// never shrinks. Calls on different streams are ordered by an event.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace libra::cudnn {

class Scratch {
 public:
  explicit Scratch(std::int32_t device);
  /// Waits for the last call that used it. Never throws.
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// At least `bytes`, aligned to 256; what it held is lost. Later work on `stream` may use it
  /// until done().
  std::byte* reserve(std::int64_t bytes, cudaStream_t stream);
  /// Everything that uses the memory has been enqueued on `stream`.
  void done(cudaStream_t stream);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t allocations() const { return allocations_; }

 private:
  std::int32_t device_;
  cudaEvent_t used_ = nullptr;
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t allocations_ = 0;
};

}  // namespace libra::cudnn
