// How long core attention of one layer takes on every worker that computes it together: what every
// method gives, whatever it does inside.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/sim/links.h"

namespace libra {

/// Of one worker, in seconds. A pass is computation and what of communication is not under it.
struct WorkerTimes {
  double forward_compute = 0;
  double forward = 0;
  double backward_compute = 0;
  double backward = 0;

  double compute() const { return forward_compute + backward_compute; }
  double total() const { return forward + backward; }
};

/// Of the workers of one pool (or of one sequence) at one GA index.
struct PoolTimes {
  std::vector<WorkerTimes> workers;
  LinkBytes forward_bytes;
  LinkBytes backward_bytes;
  /// Query-key pairs times heads that are computed: equal for all ways to do the same step.
  std::int64_t work = 0;
  /// Most that a worker needs besides its own tensors, in bytes; 0 where it is not modelled.
  std::int64_t extra_memory_bytes = 0;
  /// What planning took here and now; the only figure that is measured. 0 where there is no plan.
  double plan_us = 0;
};

/// No port may carry more than its rate in the time that a pass takes. `forward_port_s`,
/// `backward_port_s`: FlowTable::busiest_port_seconds() of all that the pass moves. Throws
/// InternalError.
void check_port_rates(const PoolTimes& times, double forward_port_s, double backward_port_s);

}  // namespace libra
