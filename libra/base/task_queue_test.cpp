#include "libra/base/task_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "libra/base/error.h"

namespace libra {
namespace {

TEST(TaskQueue, RunsTasksInOrder) {
  TaskQueue queue;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) queue.enqueue([&order, i] { order.push_back(i); });
  queue.synchronize();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(TaskQueue, AFailureSkipsLaterTasksAndIsRethrown) {
  TaskQueue queue;
  bool ran = false;
  queue.enqueue([] { throw TransportError("worker 3 is gone"); });
  queue.enqueue([&ran] { ran = true; });
  EXPECT_THROW(queue.synchronize(), TransportError);
  EXPECT_FALSE(ran);
  queue.enqueue([&ran] { ran = true; });
  EXPECT_THROW(queue.synchronize(), TransportError);
  EXPECT_FALSE(ran);
}

TEST(TaskQueue, FailureTasksRunOnlyAfterAFailure) {
  std::atomic<int> poisoned = 0;
  {
    TaskQueue healthy;
    healthy.enqueue_on_failure([&poisoned] { ++poisoned; });
    healthy.synchronize();
    EXPECT_EQ(poisoned, 0);
    TaskQueue failing;
    failing.enqueue([] { throw TransportError("no"); });
    failing.enqueue_on_failure([&poisoned] { ++poisoned; });
    EXPECT_THROW(failing.synchronize(), TransportError);
  }
  EXPECT_EQ(poisoned, 1);
}

TEST(TaskQueue, MarksTimeInStreamOrder) {
  TaskQueue queue;
  Timestamp before;
  Timestamp after;
  queue.mark(&before);
  queue.enqueue([] {
    volatile double sink = 0;
    for (int i = 0; i < 1'000'000; ++i) sink = sink + i;
  });
  queue.mark(&after);
  queue.synchronize();
  EXPECT_GT(after.cpu_ns, before.cpu_ns);
  EXPECT_GT(after.wall_ns, before.wall_ns);
}

TEST(TaskQueue, DestructionRunsWhatIsLeft) {
  std::atomic<int> count = 0;
  {
    TaskQueue queue;
    for (int i = 0; i < 10; ++i) queue.enqueue([&count] { ++count; });
  }
  EXPECT_EQ(count, 10);
}

}  // namespace
}  // namespace libra
