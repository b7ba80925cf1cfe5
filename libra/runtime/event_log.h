// What a worker's stream did and when: the measured timeline, in the order of the stream.
//
//   { const EventLog::Span span = log.span("forward local", -1, stream);
//     backend.forward(call, tensors, stream); }
//   stream.synchronize();
//   log.events()
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "libra/base/stream.h"
#include "libra/runtime/profiler_range.h"

namespace libra {

struct Event {
  std::string name;
  std::int32_t chunk = -1;  ///< -1: not of a chunk
  Timestamp begin;
  Timestamp end;
};

class EventLog {
 public:
  /// Marks the end of its event when destroyed. Also a profiler's range of the enqueueing host.
  class Span {
   public:
    Span(const std::string& name, Event* event, Stream* stream)
        : range_(name.c_str()), event_(event), stream_(stream) {}
    ~Span() {
      if (event_ != nullptr) stream_->mark(&event_->end);
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    ProfilerRange range_;
    Event* event_;  // null: the log is off
    Stream* stream_;
  };

  /// Marks the beginning of an event on the stream. Times are valid once the stream has been
  /// synchronised.
  Span span(const std::string& name, std::int32_t chunk, Stream& stream);

  /// Off: spans mark nothing and leave no event. On at first.
  void enable(bool on) { enabled_ = on; }

  const std::deque<Event>& events() const { return events_; }

  /// How long the worker computed, in seconds, waiting excluded: CPU time of all events, or their
  /// wall time on a device whose streams have no such clock.
  double busy_seconds() const;

  /// Requires that no stream has a mark pending.
  void clear() { events_.clear(); }

 private:
  std::deque<Event> events_;  // addresses must stay: streams write into them
  bool enabled_ = true;
};

}  // namespace libra
