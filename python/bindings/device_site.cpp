#include "python/bindings/device_site.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "libra/attention/cudnn/cudnn_attention.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_stream.h"
#include "libra/cuda/device.h"
#include "libra/transport/peer/peer_group.h"
#include "libra/transport/peer/peer_process.h"

namespace libra::python {
namespace {

std::int32_t checked(std::int32_t device) {
  const std::int32_t devices = device_count();
  if (device >= 0 && device < devices) return device;
  if (devices == 0) throw ConfigError("there is no GPU that this process can use");
  throw ConfigError(fmt::format("there is no GPU {}: they are 0 to {}", device, devices - 1));
}

std::unique_ptr<Transport> make_transport(const DevicePlace& place,
                                          const TransportOptions& options) {
  if (place.workers > 1) {
    return make_peer_process(
        {place.pool, place.worker, place.workers, place.device, place.one_queue}, options);
  }
  return std::move(make_peer_group({place.device}, options).front());
}

class DeviceSite final : public Site {
 public:
  DeviceSite(const DevicePlace& place, const TransportOptions& options)
      : device_(checked(place.device)),
        attention_(device_),
        relays_(device_),
        transport_(make_transport(place, options)) {}

  Transport& transport() override { return *transport_; }
  AttentionBackend& attention() override { return attention_; }
  Stream* relays() override { return &relays_; }
  bool blocks() const override { return false; }

  Stream& stream(std::uintptr_t handle) override {
    std::unique_ptr<CudaStream>& stream = streams_[handle];
    if (!stream) {
      stream = std::make_unique<CudaStream>(device_, reinterpret_cast<cudaStream_t>(handle));
    }
    return *stream;
  }

 private:
  std::int32_t device_;
  CudnnAttention attention_;
  CudaStream relays_;
  std::map<std::uintptr_t, std::unique_ptr<CudaStream>> streams_;  // the framework's, by handle
  std::unique_ptr<Transport> transport_;                           // last: it uses the streams
};

}  // namespace

std::unique_ptr<Site> make_device_site(const DevicePlace& place, const TransportOptions& options) {
  return std::make_unique<DeviceSite>(place, options);
}

}  // namespace libra::python
