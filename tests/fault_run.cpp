#include "tests/fault_run.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"
#include "tests/fault_worker.h"

namespace libra::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{10};

// Holds a worker back until all others have ended.
class Gate {
 public:
  explicit Gate(std::int32_t others) : others_(others) {}

  void another_has_ended() {
    const std::lock_guard lock(mutex_);
    --others_;
    changed_.notify_all();
  }
  void await_others() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return others_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int32_t others_;
};

class ScenarioRun {
 public:
  // Without a place: a run in which nothing goes wrong.
  ScenarioRun(const Scenario& scenario, std::int32_t faulty, std::int64_t place)
      : scenario_(scenario),
        faulty_(faulty),
        place_(place),
        gate_(scenario.plan.workers() - 1),
        accounts_(at(scenario.plan.workers())) {}

  void run() {
    auto endpoints = make_inproc_group(scenario_.plan.workers(), {scenario_.deadline});
    for (auto& endpoint : endpoints) {
      FaultyTransport::Fault fault = fault_of(endpoint->worker());
      endpoint = std::make_unique<FaultyTransport>(std::move(endpoint), std::move(fault));
    }
    const auto errors = on_every_worker(
        endpoints, [&](Transport& transport) { play(endpoints[at(transport.worker())]); });
    for (std::size_t worker = 0; worker < errors.size(); ++worker) {
      if (!errors[worker].empty()) accounts_[worker].wrong += errors[worker];
    }
  }

  const std::vector<Account>& accounts() const { return accounts_; }
  bool struck() const { return struck_; }
  Clock::time_point struck_at() const { return struck_at_; }

 private:
  FaultyTransport::Fault fault_of(std::int32_t worker) {
    const bool strikes = worker == faulty_ && scenario_.kind != FaultKind::kOtherPlan;
    return {scenario_.kind,     strikes ? place_ : -1, scenario_.draw,
            scenario_.deadline, [this] { halt(); },    [this] { strike(); }};
  }

  void halt() {
    if (scenario_.kind == FaultKind::kLeaves) throw Left();
    gate_.await_others();
  }

  void strike() {
    struck_at_ = Clock::now();
    struck_ = true;
  }

  void play(std::unique_ptr<Transport>& endpoint) {
    const std::int32_t worker = endpoint->worker();
    accounts_[at(worker)] =
        take_part(scenario_, endpoint, [this, worker] { return fingerprint_of(worker); });
    if (worker != faulty_) gate_.another_has_ended();
  }

  std::uint64_t fingerprint_of(std::int32_t worker) {
    if (worker != faulty_ || scenario_.kind != FaultKind::kOtherPlan || place_ < 0) {
      return plan_fingerprint(scenario_.plan);
    }
    strike();
    return plan_fingerprint(other_plan(scenario_));
  }

  const Scenario& scenario_;
  const std::int32_t faulty_;
  const std::int64_t place_;
  Gate gate_;
  std::vector<Account> accounts_;
  Clock::time_point struck_at_;
  std::atomic<bool> struck_ = false;
};

// The others may have had all they need, or have it all the same.
bool must_fail(FaultKind kind) {
  return kind == FaultKind::kLost || kind == FaultKind::kCut || kind == FaultKind::kThrows ||
         kind == FaultKind::kFails || kind == FaultKind::kOtherPlan;
}

void judge(const ScenarioRun& run, FaultKind kind, std::int32_t faulty, FaultOutcome& outcome) {
  outcome.struck = run.struck();
  bool anybody = false;
  for (std::size_t index = 0; index < run.accounts().size(); ++index) {
    const Account& account = run.accounts()[index];
    const auto worker = static_cast<std::int32_t>(index);
    if (!account.wrong.empty()) {
      outcome.problems.push_back(fmt::format("worker {}: {}", worker, account.wrong));
    }
    anybody |= !account.error.empty();
    if (account.error.empty() || worker == faulty) continue;
    ++outcome.errors;
    outcome.example = account.error;
    if (!is_precise(account.error, worker)) {
      outcome.problems.push_back(fmt::format("worker {} says: {}", worker, account.error));
    }
    if (blames(account.error, faulty)) ++outcome.errors_that_blame;
    const double seconds =
        std::chrono::duration<double>(account.error_at - run.struck_at()).count();
    outcome.seconds_to_error = std::max(outcome.seconds_to_error.value_or(0), seconds);
  }
  if (must_fail(kind) && outcome.struck && !anybody) {
    outcome.problems.emplace_back("nobody raised an error");
  }
}

// The worker nearest to the drawn one that has a place for the fault, and the place.
std::pair<std::int32_t, std::int64_t> place_of(const Scenario& scenario,
                                               const std::vector<Account>& accounts) {
  const auto workers = static_cast<std::int32_t>(accounts.size());
  for (std::int32_t step = 0; step < workers; ++step) {
    const std::int32_t worker = (scenario.worker + step) % workers;
    const std::vector<std::int64_t>& places = accounts[at(worker)].places.of(scenario.kind);
    if (places.empty()) continue;
    const auto index =
        static_cast<std::size_t>(scenario.place * static_cast<double>(places.size()));
    return {worker, places[index]};
  }
  throw Error("no worker sends anything");
}

// Whether the fault came about, or nothing at all. On a busy machine a deadline may pass before it
// does: then it is tried again with a longer one.
bool run_with_fault(const Scenario& scenario, std::int32_t worker, std::int64_t place,
                    FaultOutcome& outcome) {
  outcome = {};
  ScenarioRun run(scenario, worker, place);
  run.run();
  judge(run, scenario.kind, worker, outcome);
  return outcome.struck || outcome.errors == 0;
}

}  // namespace

FaultOutcome run_scenario(const Scenario& scenario) {
  FaultOutcome outcome;
  Scenario calm = scenario;
  calm.deadline = std::chrono::seconds(30);
  calm.kind = FaultKind::kThrows;
  ScenarioRun without(calm, -1, -1);
  without.run();
  judge(without, calm.kind, -1, outcome);
  if (outcome.errors > 0) outcome.problems.emplace_back("no fault, an error");
  if (!outcome.problems.empty()) return outcome;
  const auto [worker, place] = place_of(scenario, without.accounts());
  Scenario patient = scenario;
  while (!run_with_fault(patient, worker, place, outcome) && patient.deadline < kPatience) {
    patient.deadline *= 4;
  }
  if (!outcome.struck && outcome.errors > 0) outcome.problems.emplace_back("no fault, an error");
  return outcome;
}

}  // namespace libra::testing
