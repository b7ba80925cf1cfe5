// fault_scenarios [--count N] [--seed S]: random faults in random pools, one after the other. Every
// worker must end with a right result or a clear error, soon. Prints what came of them by kind of
// fault; exits with 1 if anything was not as it should be, with 3 if something hung.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault_run.h"
#include "tests/matrix_fraction.h"

namespace libra::testing {
namespace {

constexpr std::chrono::seconds kHang{60};  // scenarios take well under a second
// How long after twice the deadline an error may come: a fault may be up to so late, and machines
// are busy.
constexpr double kSlackSeconds = 5;

// Ends the program if it is not fed in time.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    feed("");
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // What is done next; nothing at the end.
  void feed(std::string next) {
    const std::lock_guard lock(mutex_);
    doing_ = std::move(next);
    ++meals_;
    changed_.notify_one();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    for (std::int64_t seen = 0; meals_ == 0 || !doing_.empty();) {
      seen = meals_;
      if (changed_.wait_for(lock, kHang, [&] { return meals_ != seen; })) continue;
      if (meals_ == 0) continue;
      fmt::print("HANG: {}\n", doing_);
      std::fflush(nullptr);
      std::_Exit(3);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string doing_;
  std::int64_t meals_ = 0;
  std::thread thread_;
};

struct Tally {
  int scenarios = 0, struck = 0, with_errors = 0, problems = 0;
  std::int64_t errors = 0, errors_that_blame = 0;
  std::vector<double> seconds;

  void add(const FaultOutcome& outcome) {
    ++scenarios;
    struck += outcome.struck ? 1 : 0;
    with_errors += outcome.errors > 0 ? 1 : 0;
    problems += outcome.problems.empty() ? 0 : 1;
    errors += outcome.errors;
    errors_that_blame += outcome.errors_that_blame;
    if (outcome.seconds_to_error) seconds.push_back(*outcome.seconds_to_error);
  }

  double quantile(double share) const {
    if (seconds.empty()) return 0;
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
  }

  void print(std::string_view name) const {
    fmt::print("{:<11} {:>9} {:>7} {:>7} {:>9} {:>11.0f} {:>8.0f} {:>8}\n", name, scenarios, struck,
               with_errors, errors > 0 ? fmt::format("{}%", 100 * errors_that_blame / errors) : "-",
               1000 * quantile(0.5), 1000 * quantile(1), problems);
  }
};

struct Resources {
  std::ptrdiff_t threads, files;
  friend bool operator==(const Resources&, const Resources&) = default;
};

std::ptrdiff_t entries(const char* folder) {
  std::error_code ignored;
  const std::filesystem::directory_iterator begin(folder, ignored);
  return std::distance(begin, std::filesystem::directory_iterator());
}

Resources resources() { return {entries("/proc/self/task"), entries("/proc/self/fd")}; }

class Faults {
 public:
  void run(std::uint64_t seed, bool verbose) {
    const Scenario scenario = draw_scenario(seed);
    watchdog_.feed(describe(scenario));
    FaultOutcome outcome = run_scenario(scenario);
    const double limit =
        2 * std::chrono::duration<double>(scenario.deadline).count() + kSlackSeconds;
    if (outcome.seconds_to_error.value_or(0) > limit) {
      outcome.problems.push_back(fmt::format("after {:.1f} s", *outcome.seconds_to_error));
    }
    all_.add(outcome);
    by_kind_.at(static_cast<std::size_t>(scenario.kind)).add(outcome);
    if (verbose || !outcome.problems.empty()) fmt::print("{}\n", describe(scenario));
    if (verbose) fmt::print("  {} errors: {}\n", outcome.errors, outcome.example);
    for (const std::string& problem : outcome.problems) fmt::print("  WRONG: {}\n", problem);
  }

  bool report() const {
    fmt::print("{:<11} {:>9} {:>7} {:>7} {:>9} {:>11} {:>8} {:>8}\n", "fault", "scenarios",
               "struck", "errors", "blamed", "median ms", "max ms", "wrong");
    for (std::size_t kind = 0; kind < by_kind_.size(); ++kind) {
      by_kind_[kind].print(fault_name(static_cast<FaultKind>(kind)));
    }
    all_.print("all");
    return all_.problems == 0;
  }

 private:
  Watchdog watchdog_;
  Tally all_;
  std::array<Tally, kFaultKinds> by_kind_;
};

bool run_all(std::uint64_t seed, std::int64_t count, bool verbose) {
  Faults faults;
  faults.run(seed, verbose);  // what is made once and kept
  const Resources before = resources();
  for (std::int64_t i = 1; i < count; ++i)
    faults.run(seed + static_cast<std::uint64_t>(i), verbose);
  const Resources after = resources();
  const bool good = faults.report();
  fmt::print("0 hangs; {} threads and {} files before, {} and {} after\n", before.threads,
             before.files, after.threads, after.files);
  return good && before == after;
}

}  // namespace
}  // namespace libra::testing

int main(int argc, char** argv) {
  CLI::App app("Random faults in random pools");
  std::int64_t count = 50;
  std::uint64_t seed = std::random_device{}();
  bool verbose = false;
  app.add_option("--count", count, "Scenarios")->capture_default_str();
  app.add_option("--seed", seed, "Of the first scenario; drawn if not given");
  app.add_flag("--verbose", verbose, "Say what every scenario came to");
  CLI11_PARSE(app, argc, argv);
  count = libra::testing::fraction_of(count);
  fmt::print("fault_scenarios --count {} --seed {}\n", count, seed);
  return libra::testing::run_all(seed, count, verbose) ? 0 : 1;
}
