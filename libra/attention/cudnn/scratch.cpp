#include "libra/attention/cudnn/scratch.h"

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra::cudnn {
namespace {

constexpr std::int64_t kStepBytes = 32 << 20;

}  // namespace

Scratch::Scratch(std::int32_t device) : memory_(device, kStepBytes) {
  const DeviceGuard guard(device);
  check_cuda(cudaEventCreateWithFlags(&used_, cudaEventDisableTiming), "cudaEventCreate");
}

Scratch::~Scratch() {
  cudaEventSynchronize(used_);
  cudaEventDestroy(used_);
}

void Scratch::enter(cudaStream_t stream) {
  check_cuda(cudaStreamWaitEvent(stream, used_), "cudaStreamWaitEvent");
}

void Scratch::done(cudaStream_t stream) {
  check_cuda(cudaEventRecord(used_, stream), "cudaEventRecord");
}

}  // namespace libra::cudnn
