// Runs a scenario on in-process workers: each is on a thread of its own, agrees on the plan, runs a
// forward and a backward pass and then leaves, whatever happened.
//
//   const FaultOutcome outcome = run_scenario(draw_scenario(seed));
//   outcome.problems   // what must not be: empty
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/fault_scenario.h"

namespace libra::testing {

struct FaultOutcome {
  /// A result that is wrong, an error that does not say who, where and when, a fault without an
  /// error. Empty if all is well.
  std::vector<std::string> problems;
  bool struck = false;        ///< the fault came about
  int errors = 0;             ///< survivors that raised one; the others had right results
  int errors_that_blame = 0;  ///< of these, those that name the worker whose fault it was
  /// From the fault to the last survivor's error; none if nobody raised one.
  std::optional<double> seconds_to_error;
  std::string example;  ///< a survivor's error
};

FaultOutcome run_scenario(const Scenario& scenario);

}  // namespace libra::testing
