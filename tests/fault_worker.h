// One worker's part in a scenario: it agrees on the plan, runs a forward and a backward pass and
// then leaves, whatever happened.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "tests/fault_scenario.h"
#include "tests/faulty_transport.h"

namespace libra::testing {

/// What a worker throws whose thread is to end as if its process had.
struct Left {};

/// What one worker did and saw.
struct Account {
  std::string error;  ///< empty: none
  std::chrono::steady_clock::time_point error_at;
  bool died = false;  ///< has Left
  bool forward_begun = false;
  bool backward_begun = false;
  std::string wrong;  ///< of its results, which may be right, or NaN after an error
  Places places;
};

/// `endpoint` is a FaultyTransport, and gone afterwards. `fingerprint` is called once, for the one
/// that the worker takes part with.
Account take_part(const Scenario& scenario, std::unique_ptr<Transport>& endpoint,
                  const std::function<std::uint64_t()>& fingerprint);

/// Whether an error says who, whom, where and when.
bool is_precise(const std::string& error, std::int32_t worker);

/// Whether it names this worker.
bool blames(const std::string& error, std::int32_t worker);

}  // namespace libra::testing
