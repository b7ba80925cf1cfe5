// One worker without its peers: what it posts is done at once and moves nothing. For replaying a
// worker's compute alone.
#pragma once

#include <cstdint>
#include <memory>

#include "libra/cuda/cuda_memory.h"
#include "libra/transport/transport.h"

namespace libra::cli {

class SoloTransport final : public Transport {
 public:
  /// Worker `worker` of `workers`, with an arena on `device`.
  SoloTransport(std::int32_t worker, std::int32_t workers, std::int32_t device)
      : worker_(worker), workers_(workers), device_(device) {}

  std::string name() const override { return "solo"; }
  std::int32_t worker() const override { return worker_; }
  std::int32_t workers() const override { return workers_; }
  void reserve_arena(std::int64_t bytes) override {
    if (bytes <= bytes_) return;
    arena_.reset();
    arena_ = allocate_device(device_, bytes);
    bytes_ = bytes;
  }
  std::byte* arena() override { return arena_.get(); }
  std::int64_t arena_bytes() const override { return bytes_; }
  Handle post(const Exchange&, Stream&) override { return {0}; }
  void wait(Handle, Stream&) override {}
  void poll() override {}
  void abort(const std::string&) override {}
  std::vector<ExchangeRecord> take_records() override { return {}; }

 private:
  std::int32_t worker_, workers_, device_;
  std::shared_ptr<std::byte> arena_;
  std::int64_t bytes_ = 0;
};

}  // namespace libra::cli
