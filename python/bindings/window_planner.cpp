#include "python/bindings/window_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra::python {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

WindowPlannerOptions checked(WindowPlannerOptions options) {
  check_window(options.window.sequences, options.dp, options.pool_size);
  if (options.dp_rank < 0 || options.dp_rank >= options.dp) {
    throw ConfigError(
        fmt::format("dp_rank is {}: it must be from 0 to {}", options.dp_rank, options.dp - 1));
  }
  if (options.window.last_window == LastWindow::kDrop && !options.wlb)
    options.window.first_epoch = options.from_epoch;
  if (options.prefetch < 1) throw ConfigError("prefetch is below 1: one window must be made");
  if (options.planning) check_options(options.planning->options(), options.pool_size);
  return options;
}

std::optional<WlbWindows> repacking(const std::optional<WlbOptions>& options) {
  if (!options) return std::nullopt;
  return WlbWindows(*options);
}

// A rank without a token would have no input for the model: what has less is padded to a token for
// each half of a rank's zigzag.
void pad_small_ones(Window& window, std::int32_t cp) {
  for (Packed& packed : window.sequences)
    packed.sequence.tokens = std::max<std::int64_t>(packed.sequence.tokens, 2 * cp);
}

}  // namespace

WindowPlanner::WindowPlanner(std::vector<std::int64_t> lengths, WindowPlannerOptions options)
    : corpus_{"lengths", std::move(lengths)},
      options_(checked(std::move(options))),
      windows_(corpus_, options_.window),
      repacking_(repacking(options_.wlb)),
      thread_([this] { serve(); }) {}

WindowPlanner::~WindowPlanner() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<const PlannedWindow> WindowPlanner::next_within(
    std::chrono::milliseconds patience) {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  const bool late = ready_.empty();
  changed_.wait_for(lock, patience, [this] { return !ready_.empty() || failure_; });
  if (late) waited_seconds_ += seconds_since(begin);
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return nullptr;
  }
  std::shared_ptr<const PlannedWindow> window = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return window;
}

void WindowPlanner::serve() {
  try {
    for (Window packed = first_window();; packed = next_window()) {
      std::shared_ptr<const PlannedWindow> window = make_window(std::move(packed));
      std::unique_lock lock(mutex_);
      ready_.push_back(std::move(window));
      changed_.notify_all();
      changed_.wait(lock, [this] {
        return closing_ || ready_.size() < static_cast<std::size_t>(options_.prefetch);
      });
      if (closing_) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

bool WindowPlanner::closing() {
  const std::lock_guard lock(mutex_);
  return closing_;
}

Window WindowPlanner::next_window() {
  Window window = windows_.next();
  if (!repacking_) return window;
  window = repacking_->repack(window);
  pad_small_ones(window, options_.planning ? options_.planning->options().cp : 1);
  return window;
}

Window WindowPlanner::first_window() {
  Window window = next_window();
  while (window.epoch < options_.from_epoch && !closing()) window = next_window();
  for (std::int64_t i = 0; i < options_.skip_windows && !closing(); ++i) window = next_window();
  return window;
}

std::shared_ptr<const PlannedWindow> WindowPlanner::make_window(Window packed) {
  const Clock::time_point begin = Clock::now();
  auto window = std::make_shared<PlannedWindow>();
  window->epoch = packed.epoch;
  window->sequences = std::move(packed.sequences);
  if (repacking_) window->waiting_tokens = repacking_->waiting_tokens();
  std::vector<std::int64_t> costs;
  costs.reserve(window->sequences.size());
  for (const Packed& sequence : window->sequences) {
    costs.push_back(options_.planning ? options_.planning->cost(sequence.sequence)
                                      : sequence_cost(sequence.sequence));
  }
  window->assignment = assign_pools(costs, options_.pool_size, options_.grouping);
  if (options_.by_load) window->assignment = by_load(costs, window->assignment);
  if (options_.planning) plan(*window);
  window->planning_seconds = seconds_since(begin);
  return window;
}

void WindowPlanner::plan(PlannedWindow& window) const {
  const std::int32_t group = options_.dp_rank / options_.pool_size;
  for (std::int32_t pool = 0; pool < window.assignment.pools(); ++pool) {
    if (pool_slot(pool, options_.dp, options_.pool_size).group != group) continue;
    std::vector<PackedSequence> sequences;
    for (const std::int32_t index : window.assignment.pool(pool))
      sequences.push_back(window.sequences[at(index)].sequence);
    window.plans.push_back(std::make_shared<const PoolPlan>(options_.planning->plan(sequences)));
  }
}

}  // namespace libra::python
