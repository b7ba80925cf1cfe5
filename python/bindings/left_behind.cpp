#include "python/bindings/left_behind.h"

#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

namespace libra::python {
namespace {

struct LeftBehind {
  std::mutex mutex;
  std::vector<std::thread> threads;  // guarded
  pid_t process = 0;                 // guarded; a forked child does not have them
};

// Never destroyed: a thread that is not awaited would end the process.
LeftBehind& left_behind() {
  static auto* const all = new LeftBehind;
  return *all;
}

}  // namespace

void leave_behind(std::thread thread) {
  LeftBehind& all = left_behind();
  const std::lock_guard lock(all.mutex);
  all.process = ::getpid();
  all.threads.push_back(std::move(thread));
}

void await_left_behind() {
  LeftBehind& all = left_behind();
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(all.mutex);
    if (all.process != ::getpid()) return;
    threads = std::exchange(all.threads, {});
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace libra::python
