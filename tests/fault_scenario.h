// A fault and the pool that it strikes, all from one seed: what fault_scenarios runs by the
// thousand.
//
//   const Scenario scenario = draw_scenario(seed);
//   fmt::print("{}\n", describe(scenario));
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "libra/plan/pool_plan.h"

namespace libra::testing {

enum class FaultKind : std::uint8_t {
  kDelayed,     ///< a post comes late, perhaps later than the deadline
  kLost,        ///< one message of a post is never sent
  kDuplicated,  ///< one message of a post is sent twice
  kRepeated,    ///< a whole post is made twice
  kCut,         ///< one message is a row shorter than it should be
  kThrows,      ///< the worker's host throws
  kFails,       ///< the worker's stream fails, its host goes on
  kStops,       ///< the worker's host goes no further, for good
  kStalls,      ///< the worker's stream goes no further, for good
  kLeaves,      ///< the worker's endpoint is gone
  kOtherPlan,   ///< the worker has another version, or other options or lengths
};
inline constexpr int kFaultKinds = 11;

std::string_view fault_name(FaultKind kind);

struct Scenario {
  std::uint64_t seed = 0;
  FaultKind kind = FaultKind::kDelayed;
  std::chrono::milliseconds deadline{0};
  std::int32_t worker = 0;  ///< whose fault it is
  /// Where in the worker's passes, of all its posts or of all posts that send something.
  double place = 0;
  std::uint64_t draw = 0;  ///< decides what else is left open: which message, how late, ...
  PoolPlan plan;           ///< of at least two workers that exchange something, in fp64
};

/// Equal for equal seeds.
Scenario draw_scenario(std::uint64_t seed);

/// "seed 7: lost, worker 2 of 4 at 0.31, deadline 200 ms".
std::string describe(const Scenario& scenario);

/// The plan that the worker of a kOtherPlan has in place of the pool's.
PoolPlan other_plan(const Scenario& scenario);

}  // namespace libra::testing
