#include "libra/runtime/event_log.h"

namespace libra {

EventLog::Span EventLog::span(const std::string& name, std::int32_t chunk, Stream& stream) {
  if (!enabled_) return {name, nullptr, &stream};
  events_.push_back({name, chunk, {}, {}});
  Event* event = &events_.back();
  stream.mark(&event->begin);
  return {name, event, &stream};
}

double EventLog::busy_seconds() const {
  std::int64_t cpu_ns = 0, wall_ns = 0;
  bool has_cpu_clock = false;
  for (const Event& event : events_) {
    cpu_ns += event.end.cpu_ns - event.begin.cpu_ns;
    wall_ns += event.end.wall_ns - event.begin.wall_ns;
    has_cpu_clock = has_cpu_clock || event.end.cpu_ns != 0;
  }
  return static_cast<double>(has_cpu_clock ? cpu_ns : wall_ns) * 1e-9;
}

}  // namespace libra
