#include "libra/transport/composite/composite_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"

namespace libra {
namespace {

// Handles of the last so many posts are remembered one by one. Older ones are long complete.
constexpr std::size_t kRemembered = std::size_t{1} << 12;

// What one of the two did of an exchange.
void join(ExchangeRecord& record, const ExchangeRecord& other) {
  const bool idle = other.bytes_sent + other.bytes_received == 0;
  if (idle) return;
  const bool first = record.bytes_sent + record.bytes_received == 0;
  record.begin_ns = first ? other.begin_ns : std::min(record.begin_ns, other.begin_ns);
  record.end_ns = first ? other.end_ns : std::max(record.end_ns, other.end_ns);
  record.bytes_sent += other.bytes_sent;
  record.bytes_received += other.bytes_received;
}

class CompositeTransport final : public Transport {
 public:
  CompositeTransport(std::unique_ptr<Transport> first, std::unique_ptr<Transport> second,
                     std::vector<bool> near)
      : first_(std::move(first)), second_(std::move(second)), near_(std::move(near)) {}

  std::string name() const override { return first_->name() + "+" + second_->name(); }
  bool posts_ahead() const override { return first_->posts_ahead() && second_->posts_ahead(); }
  std::int32_t worker() const override { return first_->worker(); }
  std::int32_t workers() const override { return first_->workers(); }
  void reserve_arena(std::int64_t bytes) override { first_->reserve_arena(bytes); }
  std::byte* arena() override { return first_->arena(); }
  std::int64_t arena_bytes() const override { return first_->arena_bytes(); }

  Handle post(const Exchange& exchange, Stream& stream) override {
    Exchange near{exchange.tag, {}, {}, exchange.more}, far = near;
    split(exchange.sends, near.sends, far.sends);
    split(exchange.receives, near.receives, far.receives);
    Pair pair;
    guarded([&] {
      pair.first = first_->post(near, stream);
      pair.second = second_->post(far, stream);
    });
    handles_.push_back(pair);
    if (handles_.size() > kRemembered) {
      handles_.pop_front();
      ++forgotten_;
    }
    return {forgotten_ + std::ssize(handles_) - 1};
  }

  void wait(Handle handle, Stream& stream) override {
    LIBRA_CHECK(handle.id >= 0 && handle.id < forgotten_ + std::ssize(handles_),
                "worker {} has posted no exchange {}", worker(), handle.id);
    if (handle.id < forgotten_) return;
    const Pair& pair = handles_[static_cast<std::size_t>(handle.id - forgotten_)];
    guarded([&] {
      first_->wait(pair.first, stream);
      second_->wait(pair.second, stream);
    });
  }

  void poll() override {
    guarded([&] {
      first_->poll();
      second_->poll();
    });
  }

  void abort(const std::string& reason) override {
    first_->abort(reason);
    second_->abort(reason);
  }

  // Both finish every exchange in the order of posting, but one may be ahead of the other.
  std::vector<ExchangeRecord> take_records() override {
    for (const ExchangeRecord& record : first_->take_records()) first_records_.push_back(record);
    for (const ExchangeRecord& record : second_->take_records()) second_records_.push_back(record);
    std::vector<ExchangeRecord> records;
    while (!first_records_.empty() && !second_records_.empty()) {
      ExchangeRecord record = first_records_.front();
      join(record, second_records_.front());
      records.push_back(record);
      first_records_.pop_front();
      second_records_.pop_front();
    }
    return records;
  }

 private:
  struct Pair {
    Handle first, second;
  };

  // The failure of one is the failure of both.
  template <typename Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (const TransportError& error) {
      abort(error.what());
      throw;
    }
  }

  void split(const std::vector<Transfer>& all, std::vector<Transfer>& near,
             std::vector<Transfer>& far) const {
    for (const Transfer& transfer : all) {
      const auto peer = static_cast<std::size_t>(transfer.peer);
      if (peer >= near_.size()) {
        throw ConfigError(
            fmt::format("peer {} of {} workers: they count from 0", transfer.peer, workers()));
      }
      (near_[peer] ? near : far).push_back(transfer);
    }
  }

  std::unique_ptr<Transport> first_;
  std::unique_ptr<Transport> second_;
  std::vector<bool> near_;
  std::deque<Pair> handles_;
  std::int64_t forgotten_ = 0;
  std::deque<ExchangeRecord> first_records_, second_records_;
};

}  // namespace

std::unique_ptr<Transport> make_composite(std::unique_ptr<Transport> first,
                                          std::unique_ptr<Transport> second,
                                          std::vector<bool> near) {
  if (first->workers() != second->workers() || first->worker() != second->worker()) {
    throw ConfigError(fmt::format("{} is worker {} of {}, {} is worker {} of {}: they must agree",
                                  first->name(), first->worker(), first->workers(), second->name(),
                                  second->worker(), second->workers()));
  }
  if (std::ssize(near) != first->workers()) {
    throw ConfigError(fmt::format("{} peers are assigned to transports, and there are {} workers",
                                  near.size(), first->workers()));
  }
  return std::make_unique<CompositeTransport>(std::move(first), std::move(second), std::move(near));
}

}  // namespace libra
