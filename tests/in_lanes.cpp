#include "tests/in_lanes.h"

#include <chrono>
#include <future>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra::testing {

/// Opened by one stream's task, awaited by others'.
class InLanes::Gate {
 public:
  void open() { promise_.set_value(); }
  void await() const {
    if (future_.wait_for(std::chrono::seconds(10)) == std::future_status::ready) return;
    throw Error("a lane does not go on");
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

Handle InLanes::post(const Exchange& exchange, Stream& stream) {
  const auto reached = std::make_shared<Gate>();
  dynamic_cast<TaskQueue&>(stream).enqueue([reached] { reached->open(); });
  Exchange by_peers{exchange.tag, {}, {}, exchange.more};
  Posted posted;
  for (const bool send : {true, false}) {
    for (const Transfer& transfer : send ? exchange.sends : exchange.receives) {
      if (copies(transfer, send)) {
        posted.copied.push_back(copy(exchange.tag, transfer, send, reached));
      } else {
        (send ? by_peers.sends : by_peers.receives).push_back(transfer);
      }
    }
  }
  posted.copied_by_peers = TransportDecorator::post(by_peers, stream);
  posted_.push_back(std::move(posted));
  return {static_cast<std::int64_t>(posted_.size()) - 1};
}

void InLanes::wait(Handle handle, Stream& stream) {
  const Posted& posted = posted_.at(at(handle.id));
  TransportDecorator::wait(posted.copied_by_peers, stream);
  for (const SharedGate& gate : posted.copied) {
    dynamic_cast<TaskQueue&>(stream).enqueue([gate] { gate->await(); });
  }
}

// What leaves an arena is fetched by its receiver; what else goes into one is brought.
bool InLanes::copies(const Transfer& transfer, bool send) {
  const bool here = transfer.local.data >= arena() && transfer.local.data < arena() + arena_bytes();
  const bool from_arena = send ? here : transfer.peer_arena_offset >= 0;
  return from_arena != send;
}

InLanes::SharedGate InLanes::copy(const Tag& tag, const Transfer& transfer, bool send,
                                  const SharedGate& reached) {
  TaskQueue& lane = lanes_[lane_of(tag, send)];
  lane.enqueue([reached] { reached->await(); });
  Exchange one{tag, {}, {}, false};
  (send ? one.sends : one.receives).push_back(transfer);
  TransportDecorator::wait(TransportDecorator::post(one, lane), lane);
  auto done = std::make_shared<Gate>();
  lane.enqueue([done] { done->open(); });
  return done;
}

}  // namespace libra::testing
