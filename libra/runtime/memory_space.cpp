#include "libra/runtime/memory_space.h"

#include <cstring>
#include <new>

#include "libra/base/task_queue.h"

namespace libra {
namespace {

constexpr std::align_val_t kAlignment{256};

class HostMemory final : public MemorySpace {
 public:
  std::unique_ptr<Stream> make_stream() const override { return std::make_unique<TaskQueue>(); }

  std::shared_ptr<std::byte> allocate(std::int64_t bytes) const override {
    if (bytes == 0) return nullptr;
    return {static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kAlignment)),
            [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
  }
  void upload(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void download(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

std::int64_t bytes_of(const TensorView& dense) {
  return dense.rows * dense.row_stride * element_bytes(dense.dtype);
}

}  // namespace

const MemorySpace& host_memory() {
  static const HostMemory memory;
  return memory;
}

Mirror::Mirror(const MemorySpace& space, HostTensor& tensor)
    : space_(space), tensor_(tensor), view_(tensor.view()) {
  memory_ = space.allocate(bytes_of(view_));
  space.upload(static_cast<const std::byte*>(view_.data), memory_.get(), bytes_of(view_));
  view_.data = memory_.get();
}

void Mirror::fetch() {
  space_.download(memory_.get(), static_cast<std::byte*>(tensor_.view().data), bytes_of(view_));
}

}  // namespace libra
