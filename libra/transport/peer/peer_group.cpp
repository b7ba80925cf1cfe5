#include "libra/transport/peer/peer_group.h"

#include <fmt/format.h>

#include <string>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/cuda/cuda_memory.h"
#include "libra/cuda/device.h"
#include "libra/transport/check_exchange.h"
#include "libra/transport/peer/hub.h"

namespace libra {
namespace {

class PeerTransport final : public Transport {
 public:
  PeerTransport(std::shared_ptr<peer::Hub> hub, std::int32_t worker)
      : hub_(std::move(hub)), worker_(worker) {}
  ~PeerTransport() override { hub_->leave(worker_); }
  PeerTransport(const PeerTransport&) = delete;
  PeerTransport& operator=(const PeerTransport&) = delete;

  std::string name() const override { return "peer"; }
  std::int32_t worker() const override { return worker_; }
  std::int32_t workers() const override { return hub_->workers(); }

  void reserve_arena(std::int64_t bytes) override {
    if (bytes <= arena_bytes_) return;
    LIBRA_CHECK(hub_->idle(worker_), "worker {} grows its arena in an exchange", worker_);
    arena_.reset();
    arena_bytes_ = 0;
    arena_ = allocate_device(hub_->device(worker_), bytes);
    arena_bytes_ = bytes;
  }
  std::byte* arena() override { return arena_.get(); }
  std::int64_t arena_bytes() const override { return arena_bytes_; }

  Handle post(const Exchange& exchange, Stream& stream) override {
    check_exchange(exchange, worker_, workers());
    return hub_->post(worker_, exchange, own(stream));
  }
  void wait(Handle handle, Stream& stream) override { hub_->wait(worker_, handle, own(stream)); }
  void poll() override { hub_->poll(worker_); }
  void abort(const std::string& reason) override {
    hub_->fail(fmt::format("worker {} aborted: {}", worker_, reason));
    hub_->settle(worker_);
  }
  std::vector<ExchangeRecord> take_records() override { return hub_->take_records(worker_); }

 private:
  const CudaStream& own(Stream& stream) const {
    const CudaStream& cuda = as_cuda(stream);
    if (cuda.device() != hub_->device(worker_)) {
      throw ConfigError(fmt::format("worker {} is on device {}, its stream on device {}", worker_,
                                    hub_->device(worker_), cuda.device()));
    }
    return cuda;
  }

  std::shared_ptr<peer::Hub> hub_;
  std::int32_t worker_;
  std::shared_ptr<std::byte> arena_;
  std::int64_t arena_bytes_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_peer_group(const std::vector<std::int32_t>& devices,
                                                        const TransportOptions& options) {
  if (devices.empty()) throw ConfigError("a group of 0 workers: at least 1");
  check_options(options);
  for (const std::int32_t device : devices) {
    if (device >= 0 && device < device_count()) continue;
    throw ConfigError(
        fmt::format("device {} is not there: this process can use {}", device, device_count()));
  }
  const auto hub = std::make_shared<peer::Hub>(devices, options);
  std::vector<std::unique_ptr<Transport>> endpoints;
  endpoints.reserve(devices.size());
  for (std::int32_t worker = 0; worker < hub->workers(); ++worker) {
    endpoints.push_back(std::make_unique<PeerTransport>(hub, worker));
  }
  return endpoints;
}

}  // namespace libra
