// One window with one method, reduced to what reports need.
//
// Internal to this room.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/sim/attention_times.h"
#include "libra/sim/simulate.h"

namespace libra {

struct WindowFigures {
  MeanMax straggler, forward, backward, straggler_compute;  // over the window's GA indices
  double exposed_comm_ms = 0;
  double max_over_mean = 0;
  LinkBytes forward_bytes, backward_bytes;
  std::int64_t work = 0;
  double tokens = 0;
  double step_s = 0;
  double sync_s = 0;
  double bubble_share = 0;
  double attention_s = 0;
  double memory_bytes = 0;
  double extra_memory_bytes = 0;
  double plan_us = 0;  ///< median over the pools
  std::vector<double> microbatch_ms;
  std::vector<double> worker_ms;                         // only if details are wanted, as is
  std::vector<std::vector<PipelineOperation>> timeline;  // this
};

/// `attention`: as window_times() gives it for the method, with `slots`.
WindowFigures window_figures(const Environment& environment, const Method& method,
                             const std::vector<std::vector<PoolTimes>>& attention,
                             std::span<const PackedSequence> slots, bool details);

}  // namespace libra
