// Streams and events as threads and counters, for stand_in_cuda.cpp. Of tests alone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace libra::peer {

/// A thread that does what is enqueued, in order. Like CUDA's, enqueue() waits while the queue is
/// full.
class StandInStream {
 public:
  StandInStream() : thread_([this] { run(); }) {}
  ~StandInStream() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  StandInStream(const StandInStream&) = delete;
  StandInStream& operator=(const StandInStream&) = delete;

  void enqueue(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < kQueueLength; });
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }

  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  }

 private:
  static constexpr std::size_t kQueueLength = 1024;  // as CUDA's, about

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      changed_.notify_all();
      work();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ends_ = false;
  bool busy_ = false;
  std::thread thread_;  // last: it uses everything above
};

/// Counts how often it was recorded, and how often streams have come to that.
struct StandInEvent {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  std::chrono::steady_clock::time_point at;

  std::uint64_t record() {
    const std::lock_guard lock(mutex);
    return ++recorded;
  }
  bool has_happened() {
    const std::lock_guard lock(mutex);
    return reached >= recorded;
  }
  std::uint64_t latest() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
  void reach(std::uint64_t count) {
    const std::lock_guard lock(mutex);
    if (count <= reached) return;
    reached = count;
    at = std::chrono::steady_clock::now();
    changed.notify_all();
  }
  void await(std::uint64_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= count; });
  }
};

}  // namespace libra::peer
