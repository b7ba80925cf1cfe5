#include "python/bindings/device_site.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/cuda_error.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/cuda/device_clock.h"
#include "libra/transport/composite/composite_transport.h"
#include "libra/transport/composite/part_transport.h"
#include "libra/transport/peer/peer_group.h"
#include "libra/transport/peer/peer_process.h"
#ifdef LIBRA_HAS_NCCL
#include "libra/transport/nccl/nccl_transport.h"
#endif

namespace libra::python {
namespace {

std::int32_t checked(std::int32_t device) {
  const std::int32_t devices = device_count();
  if (device >= 0 && device < devices) return device;
  if (devices == 0) throw ConfigError("there is no GPU that this process can use");
  throw ConfigError(fmt::format("there is no GPU {}: they are 0 to {}", device, devices - 1));
}

// Of the workers that copy engines reach, by their numbers among themselves.
std::unique_ptr<Transport> make_near(const DevicePlace& place, const TransportOptions& options) {
  if (place.near.size() == 1) return std::move(make_peer_group({place.device}, options).front());
  const auto self = std::find(place.near.begin(), place.near.end(), place.worker);
  return make_peer_process(
      {fmt::format("{}-{}", place.pool, place.near.front()),
       static_cast<std::int32_t>(self - place.near.begin()),
       static_cast<std::int32_t>(place.near.size()), place.device, place.one_queue},
      options);
}

#ifdef LIBRA_HAS_NCCL
// Workers that copy engines do not reach; empty if they reach none.
std::vector<std::int32_t> far_workers(const DevicePlace& place) {
  std::vector<std::int32_t> far;
  if (place.near.empty()) return far;
  for (std::int32_t worker = 0; worker < place.workers; ++worker) {
    if (!std::binary_search(place.near.begin(), place.near.end(), worker)) far.push_back(worker);
  }
  return far;
}

std::unique_ptr<Transport> make_far(const DevicePlace& place, const TransportOptions& options) {
  NcclProcess process{{}, place.worker, place.workers, place.device, far_workers(place)};
  if (place.nccl_id.size() != process.id.size()) throw ConfigError("this is no id of NCCL's");
  std::memcpy(process.id.data(), place.nccl_id.data(), process.id.size());
  return make_nccl_transport(process, options);
}

std::unique_ptr<Transport> make_transport(const DevicePlace& place,
                                          const TransportOptions& options) {
  if (place.nccl_id.empty()) return make_near(place, options);
  std::unique_ptr<Transport> far = make_far(place, options);
  if (place.near.empty()) return far;
  std::vector<bool> near(at(place.workers), false);
  for (const std::int32_t worker : place.near) near.at(at(worker)) = true;
  auto part = make_part(make_near(place, options), place.near, place.workers);
  return make_composite(std::move(part), std::move(far), std::move(near));
}
#else
std::unique_ptr<Transport> make_transport(const DevicePlace& place,
                                          const TransportOptions& options) {
  return make_near(place, options);
}
#endif

class DeviceSite final : public Site {
 public:
  DeviceSite(const DevicePlace& place, const TransportOptions& options, const Kernels& kernels)
      : device_(checked(place.device)),
        cudnn_(new CudnnAttention(device_)),
        attention_(plug_in(kernels, std::unique_ptr<AttentionBackend>(cudnn_), device_,
                           [](Stream&, const std::function<void()>& work) { work(); })),
        relays_(device_),
        events_(device_, EventPool::Kind::kOrderOnly),
        transport_(make_transport(place, options)) {}

  Transport& transport() override { return *transport_; }
  AttentionBackend& attention() override { return *attention_; }
  Stream* relays() override { return &relays_; }
  bool blocks() const override { return false; }
  std::int64_t graph_builds() const override { return cudnn_->graph_builds(); }

  void passed(Stream& stream) override {
    if (transport_->workers() == 1) return;
    std::unique_ptr<PooledEvent>& end = ends_[&stream];
    if (end == nullptr) end = std::make_unique<PooledEvent>(events_);
    check_cuda(cudaEventRecord(end->get(), as_cuda(stream).get()), "cudaEventRecord");
  }

  bool is_busy() override try {
    const DeviceGuard guard(device_);
    transport_->poll();
    return std::any_of(ends_.begin(), ends_.end(),
                       [](const auto& end) { return !has_happened(end.second->get()); });
  } catch (const std::exception&) {
    return false;
  }

  Stream& stream(std::uintptr_t handle) override {
    std::unique_ptr<CudaStream>& stream = streams_[handle];
    if (!stream) {
      stream = std::make_unique<CudaStream>(device_, reinterpret_cast<cudaStream_t>(handle));
    }
    return *stream;
  }

 private:
  std::int32_t device_;
  CudnnAttention* cudnn_;  // attention_'s, or beneath it
  std::unique_ptr<AttentionBackend> attention_;
  CudaStream relays_;
  std::map<std::uintptr_t, std::unique_ptr<CudaStream>> streams_;  // the framework's, by handle
  EventPool events_;
  std::map<const Stream*, std::unique_ptr<PooledEvent>> ends_;  // of each stream's last pass
  std::unique_ptr<Transport> transport_;                        // last: it uses the streams
};

}  // namespace

std::string new_nccl_id() {
#ifdef LIBRA_HAS_NCCL
  const NcclId id = make_nccl_id();
  return {reinterpret_cast<const char*>(id.data()), id.size()};
#else
  throw ConfigError(
      "this build of Libra has no NCCL, which pools on several hosts need: install it where NCCL "
      "is found");
#endif
}

std::unique_ptr<Site> make_device_site(const DevicePlace& place, const TransportOptions& options,
                                       const Kernels& kernels) {
  return std::make_unique<DeviceSite>(place, options, kernels);
}

}  // namespace libra::python
