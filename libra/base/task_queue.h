// The CPU's stream: one thread that runs tasks in the order they were enqueued.
//
//   TaskQueue queue;
//   queue.enqueue([&] { compute(); });          // returns at once
//   queue.enqueue_on_failure([&] { poison(); });
//   queue.synchronize();                         // waits; rethrows what a task threw
//
// After a task has thrown, later tasks are skipped, so that nothing computes on data that never
// came; tasks given to enqueue_on_failure run then, and only then. Thread rules: one thread
// enqueues and synchronises. Tasks may block; they must not synchronise their own queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "libra/base/stream.h"

namespace libra {

class TaskQueue final : public Stream {
 public:
  TaskQueue();
  /// Runs what is left (skips it after a failure) and joins the thread. Never throws.
  ~TaskQueue() override;
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  void enqueue(std::function<void()> task);

  /// Runs in its turn if an earlier task has failed. Must not throw.
  void enqueue_on_failure(std::function<void()> task);

  void mark(Timestamp* out) override;
  void synchronize() override;

 private:
  struct Item {
    std::function<void()> task;
    bool on_failure = false;
  };

  void run();
  void run_item(const Item& item);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool idle_ = true;
  bool closing_ = false;
  bool failed_ = false;         // written by the worker thread only
  std::exception_ptr failure_;  // guarded by mutex_
  std::thread thread_;          // last: it uses everything above
};

}  // namespace libra
