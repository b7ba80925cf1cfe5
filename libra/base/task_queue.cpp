#include "libra/base/task_queue.h"

#include <chrono>
#include <ctime>
#include <utility>

#include "libra/base/error.h"

namespace libra {
namespace {

Timestamp now() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count(),
          static_cast<std::int64_t>(cpu.tv_sec) * 1'000'000'000 + cpu.tv_nsec};
}

}  // namespace

TaskQueue::TaskQueue() : thread_([this] { run(); }) {}

TaskQueue::~TaskQueue() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TaskQueue::enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back({std::move(task), false});
  }
  changed_.notify_all();
}

void TaskQueue::enqueue_on_failure(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back({std::move(task), true});
  }
  changed_.notify_all();
}

void TaskQueue::mark(Timestamp* out) {
  enqueue([out] { *out = now(); });
}

void TaskQueue::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return items_.empty() && idle_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (failed_) throw TransportError("the stream failed earlier and takes no more work");
}

void TaskQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    idle_ = false;
    lock.unlock();
    run_item(item);
    lock.lock();
    idle_ = true;
    changed_.notify_all();
  }
}

void TaskQueue::run_item(const Item& item) {
  if (failed_ != item.on_failure) return;
  try {
    item.task();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    failure_ = std::current_exception();
  }
}

}  // namespace libra
