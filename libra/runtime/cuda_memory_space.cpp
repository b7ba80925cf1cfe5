#include "libra/runtime/cuda_memory_space.h"

#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/cuda_stream.h"

namespace libra {
namespace {

class CudaMemory final : public MemorySpace {
 public:
  explicit CudaMemory(std::int32_t device) : device_(device) {}

  std::unique_ptr<Stream> make_stream() const override {
    return std::make_unique<CudaStream>(device_);
  }
  std::shared_ptr<std::byte> allocate(std::int64_t bytes) const override {
    return allocate_device(device_, bytes);
  }
  void upload(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    copy_memory(from, to, bytes);
  }
  void download(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    copy_memory(from, to, bytes);
  }

 private:
  std::int32_t device_;
};

}  // namespace

std::unique_ptr<MemorySpace> make_cuda_memory(std::int32_t device) {
  return std::make_unique<CudaMemory>(device);
}

}  // namespace libra
