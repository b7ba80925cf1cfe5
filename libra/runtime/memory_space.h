// Where a worker's tensors lie and its stream runs: the host, or a GPU. What a run needs to know of
// a device besides its attention backend and transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libra/base/stream.h"
#include "libra/runtime/host_tensor.h"

namespace libra {

class MemorySpace {
 public:
  virtual ~MemorySpace() = default;

  virtual std::unique_ptr<Stream> make_stream() const = 0;

  /// Contents unspecified, aligned to 256 bytes, freed with the last copy of the pointer; null for
  /// 0 bytes.
  virtual std::shared_ptr<std::byte> allocate(std::int64_t bytes) const = 0;

  /// From host memory to memory of this space, and back. Done on return.
  virtual void upload(const std::byte* from, std::byte* to, std::int64_t bytes) const = 0;
  virtual void download(const std::byte* from, std::byte* to, std::int64_t bytes) const = 0;
};

/// The host, with TaskQueue streams.
const MemorySpace& host_memory();

/// The copy of a host tensor in a memory space, dense.
class Mirror {
 public:
  /// Uploads `tensor`, which must outlive this.
  Mirror(const MemorySpace& space, HostTensor& tensor);

  TensorView view() const { return view_; }

  /// Overwrites the host tensor with what is there now. No stream may be writing to it.
  void fetch();

 private:
  const MemorySpace& space_;
  HostTensor& tensor_;
  std::shared_ptr<std::byte> memory_;
  TensorView view_;
};

}  // namespace libra
