// A transport that passes everything on: the base of those that add a fault or a watch.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libra/transport/transport.h"

namespace libra::testing {

class TransportDecorator : public Transport {
 public:
  explicit TransportDecorator(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  bool posts_ahead() const override { return inner_->posts_ahead(); }
  std::int32_t worker() const override { return inner_->worker(); }
  std::int32_t workers() const override { return inner_->workers(); }
  void reserve_arena(std::int64_t bytes) override { inner_->reserve_arena(bytes); }
  std::byte* arena() override { return inner_->arena(); }
  std::int64_t arena_bytes() const override { return inner_->arena_bytes(); }
  Handle post(const Exchange& exchange, Stream& stream) override {
    return inner_->post(exchange, stream);
  }
  void wait(Handle handle, Stream& stream) override { inner_->wait(handle, stream); }
  void poll() override { inner_->poll(); }
  void abort(const std::string& reason) override { inner_->abort(reason); }
  std::vector<ExchangeRecord> take_records() override { return inner_->take_records(); }

 private:
  std::unique_ptr<Transport> inner_;
};

/// Every endpoint of an in-process group in a decorator of its own.
template <typename Decorator>
std::vector<std::unique_ptr<Transport>> decorated(std::vector<std::unique_ptr<Transport>> group) {
  for (std::unique_ptr<Transport>& endpoint : group) {
    endpoint = std::make_unique<Decorator>(std::move(endpoint));
  }
  return group;
}

}  // namespace libra::testing
