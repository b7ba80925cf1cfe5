#include "libra/attention/cudnn/device_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "libra/cuda/cuda_error.h"
#include "libra/cuda/device.h"

namespace libra::cudnn {
namespace {

// A turn takes tens of microseconds.
constexpr std::chrono::milliseconds kPatience{20};

void check_cudnn(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("{}: {}", what, cudnnGetErrorString(status)));
}

template <typename Copies>
auto* find_free(Copies& copies) {
  for (const auto& copy : copies) {
    if (!copy->busy) return copy.get();
  }
  return static_cast<typename Copies::value_type::pointer>(nullptr);
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
  handles_.push_back(take_handle());  // a device that is not there is found here
}

std::int64_t DeviceGraphs::prepare(const SdpaShape& shape) {
  const std::lock_guard lock(mutex_);
  Copies& copies = graphs_[shape];
  const Graph& graph = copies.empty() ? build(shape) : *copies.front();
  return graph.graph->workspace_bytes();
}

bool DeviceGraphs::has_run(const SdpaShape& shape) const {
  const std::lock_guard lock(mutex_);
  const auto found = graphs_.find(shape);
  return found != graphs_.end() && std::any_of(found->second.begin(), found->second.end(),
                                               [](const auto& graph) { return graph->has_run; });
}

void DeviceGraphs::run(const SdpaShape& shape, const SdpaMemory& memory, void* workspace,
                       cudaStream_t stream) {
  const DeviceGuard guard(device_);
  std::unique_lock lock(mutex_);
  Graph& graph = take(shape, lock);
  auto* const handle = take_handle();
  lock.unlock();
  const auto give_back = [&](Graph* used) {
    lock.lock();
    used->busy = false;
    used->has_run = true;
    handles_.push_back(handle);
    freed_.notify_all();
  };
  const std::unique_ptr<Graph, decltype(give_back)> turn(&graph, give_back);
  check_cudnn(cudnnSetStream(handle, stream), "cudnnSetStream");
  graph.graph->run(handle, memory, workspace);
}

std::int64_t DeviceGraphs::builds() const {
  const std::lock_guard lock(mutex_);
  return builds_;
}

DeviceGraphs::Graph& DeviceGraphs::build(const SdpaShape& shape) {
  const DeviceGuard guard(device_);
  auto* const handle = take_handle();
  handles_.push_back(handle);  // at once: the mutex is held until the graph is there
  auto graph = std::make_unique<Graph>();
  graph->graph = std::make_unique<SdpaGraph>(shape, handle);
  ++builds_;
  return *graphs_[shape].emplace_back(std::move(graph));
}

// A graph that no other thread uses, marked as busy.
DeviceGraphs::Graph& DeviceGraphs::take(const SdpaShape& shape,
                                        std::unique_lock<std::mutex>& lock) {
  Copies& copies = graphs_[shape];
  Graph* graph = nullptr;
  freed_.wait_for(lock, kPatience, [&] {
    graph = find_free(copies);
    return graph != nullptr;
  });
  if (graph == nullptr) graph = &build(shape);
  graph->busy = true;
  return *graph;
}

cudnnHandle_t DeviceGraphs::take_handle() {
  if (!handles_.empty()) {
    auto* const handle = handles_.back();
    handles_.pop_back();
    return handle;
  }
  const DeviceGuard guard(device_);
  cudnnHandle_t handle = nullptr;
  check_cudnn(cudnnCreate(&handle), "cudnnCreate");
  return handle;
}

}  // namespace libra::cudnn
