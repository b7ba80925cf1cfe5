#include "libra/sim/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace libra {
namespace {

constexpr std::size_t kMostThreads = 256;

class Workers {
 public:
  Workers(std::size_t count, const std::function<void(std::size_t)>& task)
      : count_(count), task_(task) {}

  void work() {
    for (std::size_t i = next_++; i < count_; i = next_++) {
      try {
        task_(i);
      } catch (...) {
        keep(std::current_exception());
        next_ = count_;
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }

  std::size_t count_;
  const std::function<void(std::size_t)>& task_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task) {
  const auto machine = static_cast<std::size_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::size_t wanted = threads > 0 ? static_cast<std::size_t>(threads) : machine;
  Workers workers(count, task);
  std::vector<std::thread> others;
  const std::size_t helpers = std::min({count, wanted, kMostThreads});
  others.reserve(helpers);
  try {
    for (std::size_t i = 1; i < helpers; ++i) others.emplace_back([&workers] { workers.work(); });
  } catch (const std::system_error&) {  // no more to be had: those that there are do it all
  }
  workers.work();
  for (std::thread& thread : others) thread.join();
  workers.rethrow();
}

}  // namespace libra
