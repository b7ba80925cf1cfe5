// Timelines as Chrome trace JSON, which Perfetto and chrome://tracing open.
//
//   TraceProcess process = measured_timeline("reserve", run.workers);
//   file << trace_to_json({process});
//
// Plain data: a process (a placer, or planned beside measured) has tracks (a worker's stream, its
// exchanges), a track has slices that do not overlap. Not for logs of long jobs: all is in memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libra/runtime/pool_run.h"

namespace libra {

struct TraceSlice {
  std::string name;
  std::int64_t begin_ns = 0;  ///< from the start of the timeline
  std::int64_t end_ns = 0;
  std::vector<std::pair<std::string, double>> figures;  ///< shown when the slice is selected
};

struct TraceTrack {
  std::string name;
  std::vector<TraceSlice> slices;  ///< must not overlap
};

struct TraceProcess {
  std::string name;
  std::vector<TraceTrack> tracks;  ///< shown in this order
};

/// The JSON object format, times in microseconds.
std::string trace_to_json(const std::vector<TraceProcess>& processes);

/// Slices that may overlap, dealt to as few tracks as possible: `name`, `name 2`, ...
std::vector<TraceTrack> lay_out(const std::string& name, std::vector<TraceSlice> slices);

/// What the workers of a pool did: per worker a track of its stream and one or more of its
/// exchanges, those without a byte left out. Times are taken as they are in the traces.
TraceProcess measured_timeline(const std::string& name, const std::vector<WorkerTrace>& workers);

}  // namespace libra
