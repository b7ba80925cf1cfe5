// A transport that does one thing wrong at one place of a worker's passes: see FaultKind. Places
// are its posts, and its calls of poll() in between, counted from 0; the agreement on the plan is
// none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "libra/base/task_queue.h"
#include "tests/fault_scenario.h"
#include "tests/transport_decorator.h"

namespace libra::testing {

/// What a worker throws whose fault it is to throw.
constexpr const char* kInjected = "injected fault";

/// Which places a worker's passes have.
struct Places {
  std::vector<std::int64_t> all, posts, sending;

  /// Those where such a fault can strike.
  const std::vector<std::int64_t>& of(FaultKind kind) const;
};

class FaultyTransport final : public TransportDecorator {
 public:
  struct Fault {
    FaultKind kind = FaultKind::kThrows;
    std::int64_t place = -1;  ///< -1: nowhere
    std::uint64_t draw = 0;
    std::chrono::milliseconds deadline{0};
    /// Of kStops and kStalls: returns when the worker may go on. Of kLeaves: does not return.
    std::function<void()> halt;
    std::function<void()> struck;  ///< called when the fault comes about
  };

  FaultyTransport(std::unique_ptr<Transport> inner, Fault fault);

  Handle post(const Exchange& exchange, Stream& stream) override;
  void poll() override;

  const Places& places() const { return places_; }

 private:
  bool strikes_here();
  Handle post_wrongly(const Exchange& exchange, Stream& stream);
  Handle post_late(const Exchange& exchange, Stream& stream);
  void strike_host() const;

  Fault fault_;
  Places places_;
  std::optional<TaskQueue> late_;  // where a late message waits while the stream goes on
};

}  // namespace libra::testing
