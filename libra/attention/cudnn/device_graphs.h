// The graphs of one device, and cuDNN's handle there: shared by all backends of a process, since a
// graph takes 40 ms to 1 s to build.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "libra/attention/cudnn/sdpa_graph.h"

namespace libra::cudnn {

/// Thread-safe. Lives as long as the process.
class DeviceGraphs {
 public:
  static DeviceGraphs& of(std::int32_t device);

  /// Built on first use. Throws ConfigError if cuDNN has no kernel for the shape.
  SdpaGraph& get(const SdpaShape& shape);

  void run(SdpaGraph& graph, const SdpaMemory& memory, void* workspace, cudaStream_t stream);

  std::int64_t builds() const;

 private:
  explicit DeviceGraphs(std::int32_t device);

  std::int32_t device_;
  mutable std::mutex mutex_;  // guards what follows, and the use of the graphs
  cudnnHandle_t handle_ = nullptr;
  std::map<SdpaShape, std::unique_ptr<SdpaGraph>> graphs_;
  std::int64_t builds_ = 0;
};

}  // namespace libra::cudnn
