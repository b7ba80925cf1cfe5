// Something with threads, which the process that made it owns. In a forked child, such as a
// DataLoader's worker, the threads are not there: ending it would wait for them forever. So a child
// leaves it alone, and is told so if it asks for it.
//
//   ProcessOwned<WindowPlanner> planner(std::make_unique<WindowPlanner>(...));
//   planner.get().next();
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

#include "libra/base/error.h"

namespace libra::python {

template <typename T>
class ProcessOwned {
 public:
  explicit ProcessOwned(std::unique_ptr<T> thing)
      : thing_(std::move(thing)), process_(::getpid()) {}
  ~ProcessOwned() {
    if (!is_own()) static_cast<void>(thing_.release());
  }
  ProcessOwned(const ProcessOwned&) = delete;
  ProcessOwned& operator=(const ProcessOwned&) = delete;

  /// Throws ConfigError in a forked child.
  T& get() const {
    if (is_own()) return *thing_;
    throw ConfigError(
        "this was made before the process was forked, and its threads stayed with the parent: make "
        "pools and iterate samplers in the process that trains");
  }

  /// False in a forked child.
  bool is_own() const { return ::getpid() == process_; }

 private:
  std::unique_ptr<T> thing_;
  pid_t process_;
};

}  // namespace libra::python
