#include "libra/cli/planned_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace libra::cli {
namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// Interval 0 is the local work; the last one comes after all exchange.
std::string name_of(const char* pass, std::size_t interval, std::size_t intervals) {
  if (interval == 0) return fmt::format("{} local", pass);
  if (interval + 1 == intervals) return fmt::format("{} additions", pass);
  return fmt::format("{} chunk {}", pass, interval - 1);
}

void add_slice(TraceTrack& track, const std::string& name, double begin_s, double end_s) {
  if (end_s > begin_s) track.slices.push_back({name, nanoseconds(begin_s), nanoseconds(end_s), {}});
}

void add_pass(const char* pass, const std::vector<PassInterval>& intervals, double offset_s,
              TraceTrack& compute, TraceTrack& exchange) {
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const PassInterval& interval = intervals[i];
    const double begin = offset_s + interval.begin_s;
    add_slice(compute, name_of(pass, i, intervals.size()), begin,
              offset_s + interval.compute_end_s);
    add_slice(exchange, fmt::format("{} exchange {}", pass, i), begin,
              offset_s + interval.exchange_end_s);
  }
}

}  // namespace

TraceProcess planned_timeline(const std::string& name,
                              const std::vector<WorkerSchedule>& schedule) {
  double forward_end_s = 0;
  for (const WorkerSchedule& worker : schedule) {
    forward_end_s = std::max(forward_end_s, worker.forward.back().end_s());
  }
  TraceProcess process{name, {}};
  for (std::size_t w = 0; w < schedule.size(); ++w) {
    TraceTrack compute{fmt::format("worker {}", w), {}};
    TraceTrack exchange{fmt::format("worker {} exchange", w), {}};
    add_pass("forward", schedule[w].forward, 0, compute, exchange);
    add_pass("backward", schedule[w].backward, forward_end_s, compute, exchange);
    process.tracks.push_back(std::move(compute));
    process.tracks.push_back(std::move(exchange));
  }
  return process;
}

}  // namespace libra::cli
