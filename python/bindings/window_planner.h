// Windows of a training run, packed, grouped into pools and planned on a thread of its own, some
// windows ahead of the trainer.
//
//   WindowPlanner planner(lengths, options);
//   const auto window = planner.next_within(1s);   // waits only if planning is behind
//   window->plans[ga_index]                         // of this rank's pool
//
// Every rank that holds the same lengths and options sees the same windows and pools; it plans
// only its own. next_within() may be called by one thread; nothing here communicates.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "libra/corpus/window.h"
#include "libra/corpus/wlb_windows.h"
#include "libra/plan/pool_assignment.h"
#include "python/bindings/planning.h"

namespace libra::python {

struct WindowPlannerOptions {
  WindowOptions window;
  std::int32_t dp = 1;
  std::int32_t pool_size = 1;  ///< P
  Grouping grouping = Grouping::kVrspRefined;
  bool by_load = false;  ///< pools of like load share a GA index
  std::int32_t dp_rank = 0;
  std::int64_t from_epoch = 0;    ///< windows before it are packed, but neither grouped nor planned
  std::int64_t skip_windows = 0;  ///< the same for these, of that epoch
  std::int32_t prefetch = 2;      ///< windows that are ready ahead of the trainer, at most
  std::shared_ptr<const Planning> planning;  ///< null: windows are grouped and not planned
  /// Windows are repacked; what waits for a later one depends on all before it, so that every epoch
  /// is packed from the first on.
  std::optional<WlbOptions> wlb;
};

/// One optimizer step.
struct PlannedWindow {
  std::int64_t epoch = 0;
  std::vector<Packed> sequences;
  PoolAssignment assignment;
  std::vector<std::shared_ptr<const PoolPlan>> plans;  ///< by GA index; empty without planning
  std::int64_t waiting_tokens = 0;  ///< of samples that were kept for later windows
  double planning_seconds = 0;
};

class WindowPlanner {
 public:
  /// Throws ConfigError for options that break a rule.
  WindowPlanner(std::vector<std::int64_t> lengths, WindowPlannerOptions options);
  ~WindowPlanner();
  WindowPlanner(const WindowPlanner&) = delete;
  WindowPlanner& operator=(const WindowPlanner&) = delete;

  /// The next window; null if it is not ready in that time. Throws what went wrong while it was
  /// made, now and at every later call.
  std::shared_ptr<const PlannedWindow> next_within(std::chrono::milliseconds patience);

  /// How long next_within() has waited for windows that were not ready, in seconds.
  double waited_seconds() const { return waited_seconds_; }

  const WindowPlannerOptions& options() const { return options_; }

 private:
  void serve();
  bool closing();
  Window first_window();
  Window next_window();
  std::shared_ptr<const PlannedWindow> make_window(Window packed);
  void plan(PlannedWindow& window) const;

  Corpus corpus_;
  WindowPlannerOptions options_;
  WindowStream windows_;
  std::optional<WlbWindows> repacking_;
  double waited_seconds_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const PlannedWindow>> ready_;  // guarded
  std::exception_ptr failure_;                              // guarded
  bool closing_ = false;                                    // guarded

  std::thread thread_;  // last: it uses everything above
};

}  // namespace libra::python
