#include "python/bindings/wait_watch.h"

#include <utility>

namespace libra::python {
namespace {

constexpr std::chrono::seconds kLong{1};

}  // namespace

WaitWatch::WaitWatch(std::function<bool()> look)
    : look_(std::move(look)), thread_([this] { run(); }) {}

WaitWatch::~WaitWatch() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  left_.notify_one();
  thread_.join();
}

void WaitWatch::begin() {
  const std::lock_guard lock(mutex_);
  began_ = Clock::now();
}

void WaitWatch::end() {
  const std::lock_guard lock(mutex_);
  began_ = Clock::time_point::max();
}

// Its own pulse, so that no wait has to wake it.
void WaitWatch::run() {
  std::unique_lock lock(mutex_);
  while (!left_.wait_for(lock, kLong, [this] { return leaving_; })) {
    if (began_ > Clock::now() - kLong) continue;
    lock.unlock();
    const bool last = look_();
    lock.lock();
    if (last) return;
  }
}

}  // namespace libra::python
