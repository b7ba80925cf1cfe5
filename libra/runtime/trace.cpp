#include "libra/runtime/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace libra {
namespace {

using Json = nlohmann::ordered_json;

Json metadata(const char* what, std::size_t pid, std::size_t tid, const Json& args) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", args}};
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

Json slice_event(const TraceSlice& slice, std::size_t pid, std::size_t tid) {
  Json event = {{"name", slice.name},
                {"ph", "X"},
                {"pid", pid},
                {"tid", tid},
                {"ts", microseconds(slice.begin_ns)},
                {"dur", microseconds(slice.end_ns - slice.begin_ns)},
                {"args", Json::object()}};
  for (const auto& [name, value] : slice.figures) event["args"][name] = value;
  return event;
}

void add_track(Json& events, const TraceTrack& track, std::size_t pid, std::size_t tid) {
  events.push_back(metadata("thread_name", pid, tid, {{"name", track.name}}));
  events.push_back(metadata("thread_sort_index", pid, tid, {{"sort_index", tid}}));
  for (const TraceSlice& slice : track.slices) events.push_back(slice_event(slice, pid, tid));
}

std::string with_chunk(const std::string& name, std::int32_t chunk) {
  return chunk < 0 ? name : fmt::format("{} {}", name, chunk);
}

TraceTrack stream_track(const std::string& name, const std::vector<Event>& events) {
  TraceTrack track{name, {}};
  for (const Event& event : events) {
    const auto cpu_ns = event.end.cpu_ns - event.begin.cpu_ns;
    track.slices.push_back({with_chunk(event.name, event.chunk),
                            event.begin.wall_ns,
                            event.end.wall_ns,
                            {{"cpu_us", microseconds(cpu_ns)}}});
  }
  return track;
}

std::vector<TraceSlice> exchange_slices(const std::vector<ExchangeRecord>& records) {
  std::vector<TraceSlice> slices;
  for (const ExchangeRecord& record : records) {
    if (record.bytes_sent + record.bytes_received == 0) continue;
    slices.push_back({with_chunk(std::string(phase_name(record.tag.phase)), record.tag.chunk),
                      record.begin_ns,
                      record.end_ns,
                      {{"bytes_sent", static_cast<double>(record.bytes_sent)},
                       {"bytes_received", static_cast<double>(record.bytes_received)}}});
  }
  return slices;
}

}  // namespace

std::string trace_to_json(const std::vector<TraceProcess>& processes) {
  Json events = Json::array();
  for (std::size_t pid = 1; pid <= processes.size(); ++pid) {
    const TraceProcess& process = processes[pid - 1];
    events.push_back(metadata("process_name", pid, 0, {{"name", process.name}}));
    events.push_back(metadata("process_sort_index", pid, 0, {{"sort_index", pid}}));
    std::size_t tid = 0;
    for (const TraceTrack& track : process.tracks) add_track(events, track, pid, ++tid);
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

std::vector<TraceTrack> lay_out(const std::string& name, std::vector<TraceSlice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const TraceSlice& a, const TraceSlice& b) {
    return a.begin_ns < b.begin_ns;
  });
  std::vector<TraceTrack> tracks;
  for (TraceSlice& slice : slices) {
    const auto free = std::find_if(tracks.begin(), tracks.end(), [&slice](const TraceTrack& track) {
      return track.slices.back().end_ns <= slice.begin_ns;
    });
    if (free != tracks.end()) {
      free->slices.push_back(std::move(slice));
      continue;
    }
    const std::size_t number = tracks.size() + 1;
    tracks.push_back({number == 1 ? name : fmt::format("{} {}", name, number), {}});
    tracks.back().slices.push_back(std::move(slice));
  }
  return tracks;
}

TraceProcess measured_timeline(const std::string& name, const std::vector<WorkerTrace>& workers) {
  TraceProcess process{name, {}};
  for (std::size_t w = 0; w < workers.size(); ++w) {
    process.tracks.push_back(stream_track(fmt::format("worker {}", w), workers[w].events));
    for (TraceTrack& track :
         lay_out(fmt::format("worker {} exchange", w), exchange_slices(workers[w].records))) {
      process.tracks.push_back(std::move(track));
    }
  }
  return process;
}

}  // namespace libra
