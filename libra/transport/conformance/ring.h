// The exchange that most cases use: every worker sends to the next one and receives from the
// previous one.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/transport/conformance/cases.h"
#include "libra/transport/conformance/pattern.h"

namespace libra::conformance {

inline Tag tag_of(std::int32_t step, std::int32_t chunk = 0) {
  return {.step = step, .phase = Phase::kForwardDispatch, .chunk = chunk, .round = 0};
}

inline std::int32_t next_of(const Worker& worker) { return (worker.id() + 1) % worker.count(); }

inline std::int32_t previous_of(const Worker& worker) {
  return (worker.id() + worker.count() - 1) % worker.count();
}

/// Sends all of `out` to the next worker and receives all of `in` from the previous one.
inline Exchange ring_exchange(const Worker& worker, const Tag& tag, std::vector<Block>& out,
                              std::vector<Block>& in) {
  Exchange exchange{.tag = tag, .sends = {}, .receives = {}};
  for (Block& block : out)
    exchange.sends.push_back({.peer = next_of(worker), .local = block.view()});
  for (Block& block : in)
    exchange.receives.push_back({.peer = previous_of(worker), .local = block.view()});
  return exchange;
}

/// Posts all, waits for all, and synchronises the stream.
inline void post_and_wait(Worker& worker, const std::vector<Exchange>& exchanges) {
  std::vector<Handle> handles;
  handles.reserve(exchanges.size());
  for (const Exchange& exchange : exchanges)
    handles.push_back(worker.transport->post(exchange, worker.stream));
  for (const Handle handle : handles) worker.transport->wait(handle, worker.stream);
  worker.stream.synchronize();
}

}  // namespace libra::conformance
