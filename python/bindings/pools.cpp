#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "libra/plan/pool_assignment.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace libra::python {
namespace {

using Pools = std::vector<std::vector<std::int32_t>>;

Pools assign(const std::vector<std::int64_t>& costs, std::int32_t pool_size,
             const std::string& grouping) {
  const PoolAssignment assignment = assign_pools(costs, pool_size, parse_grouping(grouping));
  Pools pools;
  pools.reserve(static_cast<std::size_t>(assignment.pools()));
  for (std::int32_t k = 0; k < assignment.pools(); ++k) {
    const auto pool = assignment.pool(k);
    pools.emplace_back(pool.begin(), pool.end());
  }
  return pools;
}

}  // namespace

void bind_pools(nb::module_& module) {
  module.def("check_window", &check_window, "gbs"_a, "dp"_a, "pool_size"_a,
             "Raises ConfigError unless DP divides GBS and P divides DP; it names the nearest "
             "legal value.");
  module.def("sequence_cost", &sequence_cost, "sequence"_a,
             "Attention work in query-key pairs per head: the sum of l (l + 1) / 2 over samples.");
  module.def("assign_pools", &assign, "costs"_a, "pool_size"_a, "grouping"_a = "vrsp_refined",
             "Indices of the sequences of each pool: vrsp_refined (vrsp, then exchanges with the "
             "heaviest pool), vrsp (the paper's section 4.2), production, zigzag or zigzag_swap. "
             "Raises ConfigError unless pool_size divides the number of "
             "costs.");
}

}  // namespace libra::python
