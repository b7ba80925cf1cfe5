#include "libra/sim/pipeline_schedule.h"

#include <algorithm>

#include "libra/base/check.h"
#include "libra/base/index.h"

namespace libra {
namespace {

using Schedule = std::vector<std::vector<PipelineOperation>>;

constexpr double kNotYet = -1;

// What stage does in which order, without times.
std::vector<PipelineOperation> order_of(std::int32_t stage, std::int32_t stages,
                                        std::int32_t microbatches) {
  std::vector<PipelineOperation> order;
  order.reserve(at(2 * microbatches));
  const std::int32_t ahead = std::min(stages - 1 - stage, microbatches);
  for (std::int32_t i = 0; i < ahead; ++i) order.push_back({stage, i, false, kNotYet, kNotYet});
  for (std::int32_t i = ahead; i < microbatches + ahead; ++i) {
    if (i < microbatches) order.push_back({stage, i, false, kNotYet, kNotYet});
    order.push_back({stage, i - ahead, true, kNotYet, kNotYet});
  }
  return order;
}

class Simulation {
 public:
  Simulation(const std::vector<std::vector<StageTimes>>& times, double transfer_s)
      : times_(times),
        transfer_s_(transfer_s),
        stages_(static_cast<std::int32_t>(times.size())),
        forward_end_(times.size(), std::vector<double>(times.front().size(), kNotYet)),
        backward_end_(forward_end_),
        next_(times.size(), 0) {
    const auto microbatches = static_cast<std::int32_t>(times.front().size());
    schedule_.reserve(times.size());
    for (std::int32_t stage = 0; stage < stages_; ++stage) {
      schedule_.push_back(order_of(stage, stages_, microbatches));
    }
  }

  Schedule run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::int32_t stage = 0; stage < stages_; ++stage) moved = advance(stage) || moved;
    }
    for (std::size_t stage = 0; stage < schedule_.size(); ++stage) {
      LIBRA_CHECK(next_[stage] == schedule_[stage].size(), "stage {} waits forever", stage);
    }
    return std::move(schedule_);
  }

 private:
  // Does what it can; whether it did anything.
  bool advance(std::int32_t stage) {
    std::vector<PipelineOperation>& operations = schedule_[at(stage)];
    std::size_t& next = next_[at(stage)];
    const std::size_t before = next;
    while (next < operations.size()) {
      PipelineOperation& operation = operations[next];
      const double input = input_time(operation);
      if (input == kNotYet) break;
      operation.begin = std::max(input, next == 0 ? 0 : operations[next - 1].end);
      operation.end = operation.begin + duration(operation);
      end_of(operation) = operation.end;
      ++next;
    }
    return next > before;
  }

  double input_time(const PipelineOperation& operation) const {
    const bool last = operation.stage == stages_ - 1;
    if (operation.backward && last)
      return forward_end_[at(operation.stage)][at(operation.microbatch)];
    if (!operation.backward && operation.stage == 0) return 0;
    const auto& ends = operation.backward ? backward_end_[at(operation.stage + 1)]
                                          : forward_end_[at(operation.stage - 1)];
    const double end = ends[at(operation.microbatch)];
    return end == kNotYet ? kNotYet : end + transfer_s_;
  }

  double duration(const PipelineOperation& operation) const {
    const StageTimes& times = times_[at(operation.stage)][at(operation.microbatch)];
    return operation.backward ? times.backward : times.forward;
  }

  double& end_of(const PipelineOperation& operation) {
    return (operation.backward ? backward_end_
                               : forward_end_)[at(operation.stage)][at(operation.microbatch)];
  }

  const std::vector<std::vector<StageTimes>>& times_;
  double transfer_s_;
  std::int32_t stages_;
  std::vector<std::vector<double>> forward_end_;
  std::vector<std::vector<double>> backward_end_;
  std::vector<std::size_t> next_;
  Schedule schedule_;
};

}  // namespace

Schedule schedule_1f1b(const std::vector<std::vector<StageTimes>>& times, double transfer_s) {
  LIBRA_CHECK(!times.empty() && !times.front().empty(), "a pipeline without work");
  return Simulation(times, transfer_s).run();
}

double makespan(const Schedule& schedule) {
  double end = 0;
  for (const auto& stage : schedule) {
    if (!stage.empty()) end = std::max(end, stage.back().end);
  }
  return end;
}

double bubble_share(const Schedule& schedule) {
  double busy = 0;
  for (const auto& stage : schedule) {
    for (const PipelineOperation& operation : stage) busy += operation.end - operation.begin;
  }
  const double all = makespan(schedule) * static_cast<double>(schedule.size());
  return all > 0 ? 1 - busy / all : 0;
}

}  // namespace libra
