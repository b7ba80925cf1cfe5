#include "libra/runtime/event_log.h"

#include <gtest/gtest.h>

#include "libra/base/task_queue.h"

namespace libra {
namespace {

// A stream whose clock is the test's.
class FakeStream final : public Stream {
 public:
  void mark(Timestamp* out) override { *out = now; }
  void synchronize() override {}
  Timestamp now;
};

TEST(EventLog, KeepsEventsInTheOrderOfTheStreamWithTheirTimes) {
  FakeStream stream;
  EventLog log;
  stream.now = {100, 10};
  {
    const EventLog::Span span = log.span("first", 3, stream);
    stream.now = {200, 40};
  }
  { const EventLog::Span span = log.span("second", -1, stream); }
  ASSERT_EQ(log.events().size(), 2U);
  EXPECT_EQ(log.events()[0].name, "first");
  EXPECT_EQ(log.events()[0].chunk, 3);
  EXPECT_EQ(log.events()[0].begin.wall_ns, 100);
  EXPECT_EQ(log.events()[0].end.wall_ns, 200);
  EXPECT_EQ(log.events()[1].name, "second");
  EXPECT_EQ(log.events()[1].begin.wall_ns, 200);
}

TEST(EventLog, KeepsNothingWhileItIsOff) {
  FakeStream stream;
  EventLog log;
  log.enable(false);
  { const EventLog::Span span = log.span("unseen", -1, stream); }
  EXPECT_TRUE(log.events().empty());
  log.enable(true);
  { const EventLog::Span span = log.span("seen", -1, stream); }
  ASSERT_EQ(log.events().size(), 1U);
  EXPECT_EQ(log.events()[0].name, "seen");
}

TEST(EventLog, AddsTheCpuTimeOfItsEvents) {
  FakeStream stream;
  EventLog log;
  EXPECT_EQ(log.busy_seconds(), 0);
  for (int i = 0; i < 2; ++i) {
    const EventLog::Span span = log.span("work", i, stream);
    stream.now.cpu_ns += 1'500'000'000;
  }
  stream.now.cpu_ns += 1'000'000'000;  // between events
  EXPECT_DOUBLE_EQ(log.busy_seconds(), 3.0);
  log.clear();
  EXPECT_TRUE(log.events().empty());
}

TEST(EventLog, AddsTheWallTimeWhereThereIsNoCpuClock) {
  FakeStream stream;
  EventLog log;
  for (int i = 0; i < 2; ++i) {
    const EventLog::Span span = log.span("work", i, stream);
    stream.now.wall_ns += 1'500'000'000;
  }
  stream.now.wall_ns += 1'000'000'000;  // between events
  EXPECT_DOUBLE_EQ(log.busy_seconds(), 3.0);
}

TEST(EventLog, EarlierEventsStayWhereTheStreamWritesThem) {
  TaskQueue stream;
  EventLog log;
  for (int i = 0; i < 1000; ++i) const EventLog::Span span = log.span("work", i, stream);
  stream.synchronize();
  for (const Event& event : log.events()) {
    EXPECT_GT(event.begin.wall_ns, 0);
    EXPECT_GE(event.end.wall_ns, event.begin.wall_ns);
  }
}

}  // namespace
}  // namespace libra
