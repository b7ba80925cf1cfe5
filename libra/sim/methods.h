// The ways to do core attention that are compared. A method is two choices, an entry of one table:
// how the samples of a window come to sequences and GA indices (arrangement), and how the sequences
// of a GA index are computed (execution). docs/methods.md says where each comes from and where it
// differs from its paper.
//
//   Arranger arranger(scenario, find_method("libra"));
//   const std::vector<PackedSequence> slots = arranger.arrange(window);   // by GA index, replica
//   window_times(environment, method, slots, first_step);   // [GA index][pool]
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libra/corpus/wlb_packing.h"
#include "libra/plan/pool_plan.h"
#include "libra/sim/attention_times.h"
#include "libra/sim/scenario.h"

namespace libra {

enum class Arrangement : std::uint8_t {
  kProduction,  ///< as they come
  kVrsp,        ///< pools of like work, as the paper forms them
  kPools,       ///< the same as we ship it: refined VRSP, by load if the scenario says so
  kSorted,      ///< by decreasing work, so that a GA index has like sequences
  kWlb,         ///< repacked by work; outliers wait
  kWlbRepack,   ///< repacked by work, every sample in its own window
};

enum class Execution : std::uint8_t {
  kPlan,      ///< a PoolPlan, replayed
  kRing,      ///< cp_times.h
  kGathered,  ///< cp_times.h
  kDistca,    ///< distca_times.h
  kIdeal,     ///< the window's work divided evenly over all workers and GA indices, no traffic
};

/// How many replicas share one plan.
enum class Scope : std::uint8_t { kReplica, kPool, kAll };

struct Method {
  std::string_view name;
  std::string_view what;  ///< one line, for tables
  Arrangement arrangement = Arrangement::kProduction;
  Execution execution = Execution::kPlan;
  /// Trains every optimizer step on the window's own samples.
  bool step_equivalent = true;

  // kPlan only.
  Scope scope = Scope::kReplica;
  PlacerKind placer = PlacerKind::kNone;
  bool faithful = false;        ///< as faithful() has it
  bool overlapped = false;      ///< else M = 1 and one thing after the other
  double distca_tolerance = 0;  ///< kDistca only
};

const std::vector<Method>& known_methods();

/// Throws ConfigError that lists the names.
const Method& find_method(std::string_view name);

/// The plan options with which a kPlan method runs. Throws ConfigError if the scenario's heads do
/// not allow it (ulysses needs H = CP).
PlanOptions plan_options(const Scenario& scenario, const Method& method);

/// P of the method: replicas that compute together.
std::int32_t pool_replicas(const Scenario& scenario, const Method& method);

/// Brings windows into order, one after the other (wlb keeps samples back).
class Arranger {
 public:
  Arranger(const Scenario& scenario, const Method& method);

  /// gbs sequences: [GA index][replica].
  std::vector<PackedSequence> arrange(std::span<const PackedSequence> window);

 private:
  std::int32_t pool_;
  bool by_load_;
  Arrangement arrangement_;
  WlbPacker packer_;
};

/// Core attention of one layer: [GA index][pool], pools of consecutive replicas from 0 on. `slots`
/// as arrange() gives them; `first_step`: GA indices of the run before this window.
std::vector<std::vector<PoolTimes>> window_times(const Environment& environment,
                                                 const Method& method,
                                                 std::span<const PackedSequence> slots,
                                                 std::int64_t first_step);

}  // namespace libra
