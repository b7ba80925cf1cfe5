#include "libra/runtime/event_log.h"

#include <utility>

namespace libra {

EventLog::Span EventLog::span(std::string name, std::int32_t chunk, Stream& stream) {
  events_.push_back({std::move(name), chunk, {}, {}});
  Event* event = &events_.back();
  stream.mark(&event->begin);
  return {event, &stream};
}

double EventLog::cpu_seconds() const {
  std::int64_t cpu_ns = 0;
  for (const Event& event : events_) cpu_ns += event.end.cpu_ns - event.begin.cpu_ns;
  return static_cast<double>(cpu_ns) * 1e-9;
}

}  // namespace libra
