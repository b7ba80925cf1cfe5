#include "libra/attention/reference/reference_attention.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "libra/attention/conformance/attention_conformance.h"
#include "libra/base/error.h"
#include "libra/base/task_queue.h"

namespace libra::conformance {
namespace {

// Address space without memory behind it until it is touched.
std::shared_ptr<std::byte> reserve(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [bytes](std::byte* first) { munmap(first, bytes); }};
}

class ReferenceSubject final : public Subject {
 public:
  std::unique_ptr<AttentionBackend> make_backend() const override {
    return std::make_unique<ReferenceAttention>();
  }
  std::unique_ptr<Stream> make_stream() const override { return std::make_unique<TaskQueue>(); }
  std::shared_ptr<std::byte> allocate(std::int64_t bytes) const override {
    const auto size = static_cast<std::size_t>(bytes);
    if (bytes > (std::int64_t{1} << 30)) return reserve(size);
    return {static_cast<std::byte*>(::operator new(size)),
            [](std::byte* memory) { ::operator delete(memory); }};
  }
  void upload(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void download(const std::byte* from, std::byte* to, std::int64_t bytes) const override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void fail(Stream& stream) const override {
    dynamic_cast<TaskQueue&>(stream).enqueue([] { throw TransportError("a peer is gone"); });
  }
  std::vector<DType> dtypes() const override { return {DType::kFp64, DType::kFp32, DType::kBf16}; }
  std::vector<HeadDims> head_dims() const override {
    return {{64, 64},   {96, 96}, {128, 128}, {192, 192}, {256, 256},
            {192, 128}, {40, 24}, {5, 5},     {5, 33},    {1, 1}};
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Reference, AttentionConformance, ReferenceSubject);

// So that no case of the suite is skipped for it.
TEST(ReferenceAttention, CanWriteTheGradientsOfAnyCall) {
  EXPECT_TRUE(ReferenceAttention().can_write({}, {}));
}

}  // namespace
}  // namespace libra::conformance
