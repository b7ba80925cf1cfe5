#include "libra/attention/cudnn/device_graphs.h"

#include <fmt/format.h>

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra::cudnn {
namespace {

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("{}: {}", what, cudnnGetErrorString(status)));
}

}  // namespace

DeviceGraphs& DeviceGraphs::of(std::int32_t device) {
  // Never destroyed: at exit the driver may be gone before the handles.
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::map<std::int32_t, std::unique_ptr<DeviceGraphs>>;
  const std::lock_guard lock(*mutex);
  std::unique_ptr<DeviceGraphs>& graphs = (*all)[device];
  if (!graphs) graphs.reset(new DeviceGraphs(device));
  return *graphs;
}

DeviceGraphs::DeviceGraphs(std::int32_t device) : device_(device) {
  const DeviceGuard guard(device);
  check_cudnn(cudnnCreate(&handle_), "cudnnCreate");
}

SdpaGraph& DeviceGraphs::get(const SdpaShape& shape) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SdpaGraph>& graph = graphs_[shape];
  if (!graph) {
    const DeviceGuard guard(device_);
    graph = std::make_unique<SdpaGraph>(shape, handle_);
    ++builds_;
  }
  return *graph;
}

void DeviceGraphs::run(SdpaGraph& graph, const SdpaMemory& memory, void* workspace,
                       cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  check_cudnn(cudnnSetStream(handle_, stream), "cudnnSetStream");
  graph.run(handle_, memory, workspace);
}

std::int64_t DeviceGraphs::builds() const {
  const std::lock_guard lock(mutex_);
  return builds_;
}

}  // namespace libra::cudnn
