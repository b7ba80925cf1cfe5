// One block of device memory that grows in stream order, so that growing neither waits nor disturbs
// what runs. It never shrinks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace libra::cudnn {

/// Used by work on one stream at a time, or by streams that wait for each other.
class StreamMemory {
 public:
  /// Grows to multiples of `step_bytes`, so that slowly rising sizes allocate rarely.
  StreamMemory(std::int32_t device, std::int64_t step_bytes)
      : device_(device), step_bytes_(step_bytes) {}
  /// Requires that no work uses the memory any more. Never throws.
  ~StreamMemory();
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  /// At least `bytes`, aligned to 256. What the block held is lost if it grows; `stream` must be
  /// behind all work that uses it.
  std::byte* reserve(std::int64_t bytes, cudaStream_t stream);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t allocations() const { return allocations_; }

 private:
  std::int32_t device_;
  std::int64_t step_bytes_;
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t allocations_ = 0;
};

}  // namespace libra::cudnn
