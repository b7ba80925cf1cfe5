// Device memory that one backend's calls use one after the other, whichever streams they are on: an
// event orders them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "libra/attention/cudnn/stream_memory.h"

namespace libra::cudnn {

/// Rounded up to what every part of the scratch memory begins at: a multiple of 256.
constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

class Scratch {
 public:
  explicit Scratch(std::int32_t device);
  /// Waits for the last call that used it. Never throws.
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Later work on `stream` comes after that of all earlier calls.
  void enter(cudaStream_t stream);
  /// At least `bytes`, aligned to 256; what it held is lost. Requires enter(). Work on `stream` may
  /// use it until done().
  std::byte* reserve(std::int64_t bytes, cudaStream_t stream) {
    return memory_.reserve(bytes, stream);
  }
  /// Everything that uses the memory has been enqueued on `stream`.
  void done(cudaStream_t stream);

  std::int64_t bytes() const { return memory_.bytes(); }
  std::int64_t allocations() const { return memory_.allocations(); }

 private:
  StreamMemory memory_;
  cudaEvent_t used_ = nullptr;
};

}  // namespace libra::cudnn
