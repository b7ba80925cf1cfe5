#include "libra/cuda/cuda_stream.h"

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra {
namespace {

cudaStream_t make_stream(std::int32_t device) {
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

}  // namespace

CudaStream::CudaStream(std::int32_t device) : CudaStream(device, make_stream(device)) {
  owned_ = true;
}

CudaStream::CudaStream(std::int32_t device, cudaStream_t stream)
    : device_(device),
      stream_(stream),
      owned_(false),
      events_(device, EventPool::Kind::kTiming),
      clock_(device, stream) {}

CudaStream::~CudaStream() {
  if (owned_) {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  for (const Mark& mark : marks_) events_.give_back(mark.event);
}

void CudaStream::mark(Timestamp* out) {
  marks_.push_back({events_.take(), out});
  check_cuda(cudaEventRecord(marks_.back().event, stream_), "cudaEventRecord");
}

void CudaStream::synchronize() {
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  for (const Mark& mark : marks_) {
    *mark.out = {clock_.wall_ns(mark.event), 0};
    events_.give_back(mark.event);
  }
  marks_.clear();
  failure_->rethrow();
}

CudaStream& as_cuda(Stream& stream) {
  auto* const cuda = dynamic_cast<CudaStream*>(&stream);
  if (cuda == nullptr) {
    throw ConfigError("the stream is none of a GPU: this backend or transport needs a CudaStream");
  }
  return *cuda;
}

}  // namespace libra
