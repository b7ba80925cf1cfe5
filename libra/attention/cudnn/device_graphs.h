// The graphs of one device: shared by all backends of a process, since one takes 40 ms to 1 s to
// build.
//
// cuDNN's plans may not run on two threads at a time, so threads take turns with a graph. But a
// thread can hang in its turn: its launch waits for room in the stream, the stream waits for a
// peer, and the peer is another thread of this process that wants the graph. So whoever has waited
// for long builds one more.
#pragma once

#include <cudnn.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "libra/attention/cudnn/sdpa_graph.h"

namespace libra::cudnn {

/// Thread-safe. Lives as long as the process.
class DeviceGraphs {
 public:
  static DeviceGraphs& of(std::int32_t device);

  /// Builds the shape's graph unless it is there. Returns the workspace that it needs, in bytes.
  /// Throws ConfigError if cuDNN has no kernel for the shape.
  std::int64_t prepare(const SdpaShape& shape);

  /// Whether a graph of the shape has run since the process began.
  bool has_run(const SdpaShape& shape) const;

  void run(const SdpaShape& shape, const SdpaMemory& memory, void* workspace, cudaStream_t stream);

  std::int64_t builds() const;

 private:
  struct Graph {
    std::unique_ptr<SdpaGraph> graph;
    bool busy = false;
    bool has_run = false;
  };
  using Copies = std::vector<std::unique_ptr<Graph>>;

  explicit DeviceGraphs(std::int32_t device);

  Graph& build(const SdpaShape& shape);
  Graph& take(const SdpaShape& shape, std::unique_lock<std::mutex>& lock);
  cudnnHandle_t take_handle();

  std::int32_t device_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable freed_;
  std::map<SdpaShape, Copies> graphs_;
  std::vector<cudnnHandle_t> handles_;  // that no thread uses
  std::int64_t builds_ = 0;
};

}  // namespace libra::cudnn
