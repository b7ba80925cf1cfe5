// The workers of a pool on the GPUs of this machine, each on a thread.
#include <fmt/format.h>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cli/executor.h"
#include "libra/cuda/device.h"
#include "libra/runtime/cuda_memory_space.h"
#include "libra/transport/peer/peer_group.h"
#ifdef LIBRA_HAS_NCCL
#include "libra/transport/nccl/nccl_transport.h"
#endif

namespace libra::cli {
namespace {

std::vector<std::int32_t> spread(std::int32_t workers, std::int32_t devices) {
  std::vector<std::int32_t> device_of(at(workers));
  for (std::size_t w = 0; w < device_of.size(); ++w) {
    device_of[w] = static_cast<std::int32_t>(w) % devices;
  }
  return device_of;
}

std::vector<std::unique_ptr<Transport>> make_nccl_endpoints(
    const std::vector<std::int32_t>& devices, const TransportOptions& options) {
#ifdef LIBRA_HAS_NCCL
  return make_nccl_group(devices, options);
#else
  throw ConfigError("--transport nccl: this program was built without NCCL");
#endif
}

class GpuExecutor final : public Executor {
 public:
  GpuExecutor(const std::string& transport, std::int32_t workers,
              std::chrono::milliseconds deadline)
      : transport_(transport), options_{deadline} {
    const std::int32_t devices = device_count();
    if (devices == 0) {
      throw ConfigError("--backend cudnn: there is no GPU that this process can use");
    }
    if (transport == "nccl" && workers > devices) {
      throw ConfigError(
          fmt::format("--transport nccl: {} workers need a GPU each, and there are {}: use peer",
                      workers, devices));
    }
    devices_ = spread(workers, transport == "inproc" ? 1 : devices);
    for (const std::int32_t device : devices_) {
      memories_.push_back(make_cuda_memory(device));
      backends_.push_back(std::make_unique<CudnnAttention>(device));
    }
  }

  PoolRun execute(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
                  double softmax_scale) override {
    run(plan, inputs, softmax_scale);
    return run(plan, inputs, softmax_scale);
  }

  bool reports() const override { return true; }

 private:
  PoolRun run(const PoolPlan& plan, const std::vector<SequenceTensors>& inputs,
              double softmax_scale) {
    const auto endpoints = transport_ == "nccl" ? make_nccl_endpoints(devices_, options_)
                                                : make_peer_group(devices_, options_);
    std::vector<WorkerSite> sites;
    sites.reserve(endpoints.size());
    for (std::size_t w = 0; w < endpoints.size(); ++w) {
      sites.push_back({*endpoints[w], *backends_[w], *memories_[w]});
    }
    const std::int64_t begin = now_ns();
    PoolRun result = run_pool(plan, sites, inputs, softmax_scale);
    for (WorkerTrace& trace : result.workers) shift_times(trace, begin);
    return result;
  }

  std::string transport_;
  TransportOptions options_;
  std::vector<std::int32_t> devices_;
  std::vector<std::unique_ptr<MemorySpace>> memories_;
  std::vector<std::unique_ptr<AttentionBackend>> backends_;
};

}  // namespace

std::unique_ptr<Executor> make_gpu_executor(const std::string& transport, std::int32_t workers,
                                            std::chrono::milliseconds deadline) {
  return std::make_unique<GpuExecutor>(transport, workers, deadline);
}

}  // namespace libra::cli
