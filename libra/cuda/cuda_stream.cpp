#include "libra/cuda/cuda_stream.h"

#include <utility>

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra {

BareStream::BareStream(std::int32_t device) {
  const DeviceGuard guard(device);
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

BareStream::~BareStream() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

CudaStream::CudaStream(std::int32_t device)
    : CudaStream(device, std::make_unique<const BareStream>(device)) {}

CudaStream::CudaStream(std::int32_t device, std::unique_ptr<const BareStream> own)
    : CudaStream(device, own->get()) {
  own_ = std::move(own);
}

CudaStream::CudaStream(std::int32_t device, cudaStream_t stream)
    : device_(device),
      stream_(stream),
      events_(device, EventPool::Kind::kTiming),
      clock_(device, stream) {}

CudaStream::~CudaStream() {
  own_.reset();
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
