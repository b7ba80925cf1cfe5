#include "libra/sim/simulation_checks.h"

#include <algorithm>
#include <cmath>

#include "libra/base/check.h"

namespace libra {
namespace {

constexpr double kRounding = 1e-9;

// How much faster than the mean GPU all GPUs together may happen to be.
double luck(const Cluster& cluster) {
  constexpr double kDeviations = 5;
  return kDeviations * (cluster.gpu_variation + cluster.step_variation) + kRounding;
}

bool pools_of_one(const Scenario& scenario, const MethodFigures& figures) {
  return figures.skipped.empty() && figures.method->execution == Execution::kPlan &&
         pool_replicas(scenario, *figures.method) == 1;
}

bool alike(const Scenario& scenario, const MethodFigures& a, const MethodFigures& b) {
  return a.method->overlapped == b.method->overlapped &&
         plan_options(scenario, *a.method) == plan_options(scenario, *b.method);
}

void check_equal(const char* what, const MethodFigures& a, double of_a, const MethodFigures& b,
                 double of_b, double tolerance) {
  LIBRA_CHECK(std::abs(of_a - of_b) <= tolerance * std::max(of_a, of_b),
              "{} of pools of one differ: {} with {}, {} with {}", what, of_a, a.method->name, of_b,
              b.method->name);
}

}  // namespace

void check_equal_work(const Method& method, const std::vector<WindowFigures>& windows,
                      const std::vector<WindowFigures>& ideal) {
  if (!method.step_equivalent) return;
  for (std::size_t window = 0; window < windows.size(); ++window) {
    LIBRA_CHECK(windows[window].work == ideal[window].work,
                "{} computes {} pairs x heads in window {}, others {}", method.name,
                windows[window].work, window, ideal[window].work);
  }
}

void check_bound(const Cluster& cluster, const MethodFigures& figures, const MethodFigures& ideal) {
  if (!figures.method->step_equivalent) return;
  const auto check = [&](const char* what, double ours, double bound) {
    LIBRA_CHECK(ours >= bound * (1 - luck(cluster)), "{}: {} of {}, less than the bound {}",
                figures.method->name, what, ours, bound);
  };
  check("a mean straggler (ms)", figures.straggler.mean_ms, ideal.straggler.mean_ms);
  check("a worst straggler (ms)", figures.straggler.max_ms, ideal.straggler.max_ms);
  check("a step (s)", figures.step_s, ideal.step_s);
}

void check_pools_of_one(const Scenario& scenario, const std::vector<MethodFigures>& methods) {
  for (std::size_t i = 0; i < methods.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const MethodFigures& a = methods[i];
      const MethodFigures& b = methods[j];
      if (!pools_of_one(scenario, a) || !pools_of_one(scenario, b) || !alike(scenario, a, b)) {
        continue;
      }
      check_equal("forward bytes", a, a.forward_bytes.total(), b, b.forward_bytes.total(),
                  kRounding);
      check_equal("backward bytes", a, a.backward_bytes.total(), b, b.backward_bytes.total(),
                  kRounding);
      if (scenario.dp == 1) {
        check_equal("mean stragglers", a, a.straggler.mean_ms, b, b.straggler.mean_ms,
                    2 * luck(scenario.cluster));
      }
    }
  }
}

}  // namespace libra
