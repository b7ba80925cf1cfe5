#include "libra/cli/planned_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace libra::cli {
namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// Spans of computation: 0 is the local work, the last one comes after all exchange.
std::string name_of(const char* pass, std::size_t span, std::size_t spans) {
  if (span == 0) return fmt::format("{} local", pass);
  if (span + 1 == spans) return fmt::format("{} additions", pass);
  return fmt::format("{} chunk {}", pass, span - 1);
}

void add_slice(TraceTrack& track, const std::string& name, const TimeSpan& span, double offset_s) {
  if (span.end_s <= span.begin_s) return;
  track.slices.push_back(
      {name, nanoseconds(offset_s + span.begin_s), nanoseconds(offset_s + span.end_s), {}});
}

void add_pass(const char* pass, const PassTimeline& timeline, double offset_s, TraceTrack& compute,
              TraceTrack& exchange) {
  const std::size_t spans = timeline.compute.size();
  for (std::size_t i = 0; i < spans; ++i) {
    add_slice(compute, name_of(pass, i, spans), timeline.compute[i], offset_s);
  }
  for (std::size_t i = 0; i < timeline.exchange.size(); ++i) {
    add_slice(exchange, fmt::format("{} exchange {}", pass, i), timeline.exchange[i], offset_s);
  }
}

}  // namespace

TraceProcess planned_timeline(const std::string& name,
                              const std::vector<WorkerSchedule>& schedule) {
  double forward_end_s = 0;
  for (const WorkerSchedule& worker : schedule) {
    forward_end_s = std::max(forward_end_s, worker.forward.end_s());
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
