// When a worker fails, whatever it was doing: every worker hears of it soon, nothing that is no
// result looks like one, and memory may be freed (with AddressSanitizer).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/runtime/random_pools.h"
#include "libra/runtime/worker_threads.h"
#include "libra/transport/inproc/transport.h"
#include "tests/disturbed_attention.h"
#include "tests/layer_driver.h"
#include "tests/matrix_fraction.h"
#include "tests/pool_check.h"
#include "tests/seat.h"

namespace libra::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kShort{300};
constexpr std::chrono::milliseconds kLong{30'000};  // who waits as long has not been told

// Three workers that all exchange with each other, three chunks. With node fetch the first two
// share a node.
PoolPlan busy_plan(BackwardMode backward, bool node_fetch = false) {
  PlanOptions options;
  options.shape = {6, 3, 4, 2};
  options.storage = DType::kFp64;
  options.block_tokens = 4;
  options.head_shards = 1;
  options.chunks = 3;
  options.backward = backward;
  options.return_lse = true;
  options.gpus_per_node = 2;
  options.node_fetch = node_fetch;
  PoolPlan plan = dealt_round(make_plan(options, {{24, {24}}, {24, {9, 12}}, {24, {17, 1, 0, 3}}}));
  EXPECT_EQ(has_relays(plan.exchange), node_fetch);
  return plan;
}

// What one worker did and saw.
struct Account {
  std::unique_ptr<LayerDriver> layer;
  bool forward_begun = false;
  bool backward_begun = false;
  std::string error;
};

void enqueue_passes(const PoolPlan& plan, Seat& seat, Account& account) {
  const auto pipeliner = seat.pipeliner(plan);
  account.forward_begun = true;
  account.layer->forward(*pipeliner, seat.stream);
  account.backward_begun = true;
  account.layer->backward(*pipeliner, seat.stream);
}

// Forward and backward until something throws; if it is the transport, the cause may be in the
// worker's own stream.
void run_passes(const PoolPlan& plan, Seat& seat, Account& account) {
  try {
    enqueue_passes(plan, seat, account);
  } catch (const std::exception& error) {
    account.error = error.what();
  }
  for (Stream* stream : {static_cast<Stream*>(&seat.stream), static_cast<Stream*>(&seat.relays)}) {
    try {
      stream->synchronize();
    } catch (const std::exception& error) {
      if (account.error.find("injected") == std::string::npos) account.error = error.what();
    }
  }
}

void expect_nothing_false(const Account& account) {
  const LayerDriver& layer = *account.layer;
  if (account.forward_begun) {
    EXPECT_TRUE(layer.forward_is_nan() || layer.wrong_in_forward().empty())
        << layer.wrong_in_forward();
  }
  if (account.backward_begun) {
    EXPECT_TRUE(layer.backward_is_nan() || layer.wrong_in_backward().empty())
        << layer.wrong_in_backward();
  }
  if (account.error.empty()) {
    EXPECT_EQ(layer.wrong_in_forward() + layer.wrong_in_backward(), "");
  }
}

struct Injected {
  Fault fault;
  std::int32_t worker;
  std::int64_t operation;
};

// Whether the worker has as many operations.
bool run_with_fault(const PoolPlan& plan, const Injected& injected) {
  const auto begin = Clock::now();
  const auto endpoints = make_inproc_group(plan.workers(), {kLong});
  std::vector<Account> accounts(endpoints.size());
  bool reached = false;
  const auto errors = on_every_worker(endpoints, [&](Transport& transport) {
    Account& account = accounts[at(transport.worker())];
    account.layer = std::make_unique<LayerDriver>(plan, transport.worker(), 1);
    const bool fails = transport.worker() == injected.worker;
    FaultAt fault(fails ? injected.fault : Fault::kNone, injected.operation);
    DisturbedAttention attention(std::ref(fault));
    {
      Seat seat(transport, attention);
      run_passes(plan, seat, account);
    }
    if (fails) reached = fault.reached();
    expect_nothing_false(account);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  for (std::size_t worker = 0; worker < accounts.size() && reached; ++worker) {
    const std::string& error = accounts[worker].error;
    if (static_cast<std::int32_t>(worker) == injected.worker) {
      EXPECT_THAT(error, HasSubstr("injected fault"));
    } else if (!error.empty()) {
      EXPECT_THAT(error, ContainsRegex("worker " + std::to_string(injected.worker)));
      EXPECT_THAT(error, HasSubstr("step "));
    }
  }
  EXPECT_LT(Clock::now() - begin, kLong);
  return reached;
}

class Hazard17 : public ::testing::TestWithParam<Fault> {};

TEST_P(Hazard17, AWorkerThatFailsAtAnyOperationLeavesNoFalseResultAnywhere) {
  for (const auto& [backward, node_fetch] : {std::pair(BackwardMode::kKeep, false),
                                             {BackwardMode::kRefetch, false},
                                             {BackwardMode::kKeep, true},
                                             {BackwardMode::kRefetch, true}}) {
    const PoolPlan plan = busy_plan(backward, node_fetch);
    std::int64_t operation = 0;
    for (;; operation += matrix_fraction()) {
      SCOPED_TRACE(::testing::Message() << backward_name(backward) << ", operation " << operation);
      if (!run_with_fault(plan, {GetParam(), 1, operation})) break;
      if (HasFailure()) return;
    }
    EXPECT_GT(operation, 30) << "of a forward and a backward pass";
  }
}

INSTANTIATE_TEST_SUITE_P(Failure, Hazard17,
                         ::testing::Values(Fault::kOnTheHost, Fault::kOnTheStream),
                         [](const auto& test) {
                           return test.param == Fault::kOnTheHost ? "OnTheHost" : "OnTheStream";
                         });

// Runs every worker but `absent`, which does `instead`; what the others saw.
template <typename Instead>
std::vector<Account> run_without(const PoolPlan& plan, std::int32_t absent,
                                 const Instead& instead) {
  const auto begin = Clock::now();
  const auto endpoints = make_inproc_group(plan.workers(), {kShort});
  std::vector<Account> accounts(endpoints.size());
  const auto errors = on_every_worker(endpoints, [&](Transport& transport) {
    Account& account = accounts[at(transport.worker())];
    account.layer = std::make_unique<LayerDriver>(plan, transport.worker(), 1);
    Seat seat(transport);
    if (transport.worker() == absent) {
      instead(seat, account);
    } else {
      run_passes(plan, seat, account);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_LT(Clock::now() - begin, kLong) << "the deadline holds";
  accounts.erase(accounts.begin() + absent);
  return accounts;
}

TEST(Hazard17, APeerThatNeverComesIsNamedWithWorkerAndStep) {
  const PoolPlan plan = busy_plan(BackwardMode::kKeep);
  for (const Account& account : run_without(plan, 1, [](Seat&, Account&) {})) {
    EXPECT_THAT(
        account.error,
        ContainsRegex("worker [02] waited 300 ms for worker 1 in step 0, forward dispatch"));
    EXPECT_TRUE(account.layer->forward_is_nan());
    EXPECT_TRUE(!account.backward_begun || account.layer->backward_is_nan());
  }
}

TEST(Hazard17, APeerThatIsMissingInTheBackwardPassIsNamedWithItsStep) {
  const PoolPlan plan = busy_plan(BackwardMode::kRefetch);
  const auto forward_only = [&plan](Seat& seat, Account& account) {
    const auto pipeliner = seat.pipeliner(plan);
    account.layer->forward(*pipeliner, seat.stream);
    seat.stream.synchronize();
  };
  for (const Account& account : run_without(plan, 2, forward_only)) {
    EXPECT_THAT(account.error, ContainsRegex("worker [01] waited 300 ms for worker 2 in step 1, "
                                             "backward dispatch"));
    EXPECT_EQ(account.layer->wrong_in_forward(), "") << "that was complete";
    EXPECT_TRUE(account.layer->backward_is_nan());
  }
}

// The whole program of a worker: buffers are freed while the error is on its way up.
bool worker_runs_fail(const PoolPlan& plan, Fault fault, std::int64_t operation) {
  const auto endpoints = make_inproc_group(plan.workers(), {kLong});
  std::atomic<bool> reached = false;
  const auto errors = on_every_worker(endpoints, [&](Transport& transport) {
    const bool fails = transport.worker() == 0;
    DisturbedAttention attention(FaultAt(fails ? fault : Fault::kNone, operation));
    WorkerRun run(plan, {transport, attention});
    try {
      run.execute(random_inputs(plan, transport.worker(), 1), kSoftmaxScale);
    } catch (...) {
      if (fails) reached = true;
      throw;
    }
  });
  EXPECT_THAT(errors[0], HasSubstr(reached ? "injected fault" : ""));
  return reached;
}

TEST(Hazard17, WorkerRunsThatFailFreeNothingThatIsInUse) {
  const PoolPlan plan = busy_plan(BackwardMode::kKeep);
  for (const Fault fault : {Fault::kOnTheHost, Fault::kOnTheStream}) {
    std::int64_t operation = 0;
    while (worker_runs_fail(plan, fault, operation)) operation += 2 * matrix_fraction();
    EXPECT_GT(operation, 30);
  }
}

TEST(Hazard17, APoolThatFailsThrowsTheFirstErrorAndEnds) {
  const PoolPlan plan = busy_plan(BackwardMode::kKeep);
  auto endpoints = make_inproc_group(plan.workers(), {kLong});
  std::atomic<int> left = 20;  // whoever comes to it
  DisturbedAttention attention([&left](TaskQueue&) {
    if (left-- == 0) throw InputError("the device", "is out of memory");
  });
  EXPECT_THROW(
      run_pool(plan, host_sites(endpoints, attention), random_pool_inputs(plan, 1), kSoftmaxScale),
      InputError);
}

}  // namespace
}  // namespace libra::testing
