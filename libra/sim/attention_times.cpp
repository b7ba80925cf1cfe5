#include "libra/sim/attention_times.h"

#include <algorithm>

#include "libra/base/check.h"

namespace libra {

void check_port_rates(const PoolTimes& times, double forward_port_s, double backward_port_s) {
  constexpr double kRounding = 1e-9;
  double forward = 0;
  double backward = 0;
  for (const WorkerTimes& worker : times.workers) {
    forward = std::max(forward, worker.forward);
    backward = std::max(backward, worker.backward);
  }
  LIBRA_CHECK(forward_port_s <= forward * (1 + kRounding), "forward: {} s of traffic in {} s",
              forward_port_s, forward);
  LIBRA_CHECK(backward_port_s <= backward * (1 + kRounding), "backward: {} s of traffic in {} s",
              backward_port_s, backward);
}

}  // namespace libra
