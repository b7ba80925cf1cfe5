// The 1F1B pipeline schedule as discrete events: which stage does which microbatch when.
//
//   stage 0   F0 F1    B0 F2 B1    B2         two stages, three microbatches
//   stage 1      F0 B0 F1 B1 F2 B2
//
// A stage does its operations in a fixed order (as many forward passes ahead as stages follow it,
// then one backward for each forward, then the rest), each as soon as its input has come.
#pragma once

#include <cstdint>
#include <vector>

namespace libra {

/// Of one microbatch on one stage, in seconds.
struct StageTimes {
  double forward = 0;
  double backward = 0;
};

struct PipelineOperation {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  bool backward = false;
  double begin = 0;
  double end = 0;
};

/// `times`: [stage][microbatch], at least one of each. `transfer_s`: of activations and gradients
/// between neighbouring stages. Operations stage by stage, in order.
std::vector<std::vector<PipelineOperation>> schedule_1f1b(
    const std::vector<std::vector<StageTimes>>& times, double transfer_s);

/// When the last operation ends.
double makespan(const std::vector<std::vector<PipelineOperation>>& schedule);

/// Share of stage time in [0, makespan) in which a stage does nothing.
double bubble_share(const std::vector<std::vector<PipelineOperation>>& schedule);

}  // namespace libra
