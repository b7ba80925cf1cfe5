// Looks round while a wait is long: about once a second, from its second second on, on a thread of
// its own. A short wait costs a look at a clock and two locks.
//
//   WaitWatch watch([&] { return found_what_ends_the_wait(); });
//   watch.begin();
//   wait_for_something();
//   watch.end();
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace libra::python {

class WaitWatch {
 public:
  /// `look` says whether that was the last look. It must not throw, nor call the watch.
  explicit WaitWatch(std::function<bool()> look);
  /// Waits for a look that has begun.
  ~WaitWatch();
  WaitWatch(const WaitWatch&) = delete;
  WaitWatch& operator=(const WaitWatch&) = delete;

  /// One wait at a time. A look may still be under way after its end.
  void begin();
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void run();

  const std::function<bool()> look_;
  std::mutex mutex_;
  std::condition_variable left_;
  bool leaving_ = false;                                // guarded
  Clock::time_point began_ = Clock::time_point::max();  // guarded; max: nobody waits
  std::thread thread_;                                  // last: it uses everything above
};

}  // namespace libra::python
