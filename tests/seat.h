// A worker on its own thread, with what its passes need.
//
//   on_every_worker(endpoints, [&](Transport& transport) {
//     LayerDriver layer(plan, transport.worker(), seed);   // outlives the stream
//     Seat seat(transport);
//     const auto pipeliner = seat.pipeliner(plan);
//     layer.forward(*pipeliner, seat.stream);
//     seat.stream.synchronize();
//   });
#pragma once

#include <memory>

#include "libra/attention/reference/reference_attention.h"
#include "libra/base/task_queue.h"
#include "libra/runtime/pipeliner.h"

namespace libra::testing {

struct Seat {
  explicit Seat(Transport& endpoint) : transport(endpoint) {}
  Seat(Transport& endpoint, AttentionBackend& backend)
      : transport(endpoint), context{backend, endpoint, log, 0, &relays} {}

  /// Reserves the arena: with every worker's stream idle.
  std::unique_ptr<Pipeliner> pipeliner(const PoolPlan& plan) {
    auto made = std::make_unique<Pipeliner>(plan, context);
    transport.reserve_arena(made->memory().arena.bytes);
    return made;
  }

  Transport& transport;
  ReferenceAttention attention;
  EventLog log;
  TaskQueue relays;
  WorkerContext context{attention, transport, log, 0, &relays};
  TaskQueue stream;
};

}  // namespace libra::testing
