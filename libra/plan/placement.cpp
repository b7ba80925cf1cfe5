#include "libra/plan/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "libra/base/check.h"
#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/plan/placers.h"

namespace libra {
namespace {

// (1 + tau) * mean in parts, so that the product stays within 64 bits: below the total it does.
std::int64_t load_cap(std::int64_t total, std::int32_t tau_ppm, std::int32_t workers) {
  constexpr std::int64_t kMillion = 1'000'000;
  if (tau_ppm >= (workers - 1) * kMillion) return total;
  const std::int64_t mean = total / workers;
  return mean + mean / kMillion * tau_ppm + mean % kMillion * tau_ppm / kMillion;
}

std::vector<std::int32_t> destinations(const PlacementProblem& problem) {
  switch (problem.options.placer) {
    case PlacerKind::kNone:
      return place_none(problem);
    case PlacerKind::kUlysses:
      return place_ulysses(problem);
    case PlacerKind::kPaper:
      return place_paper(problem);
    case PlacerKind::kReserve:
      return place_reserve(problem);
    case PlacerKind::kBalanced:
      return place_balanced(problem);
  }
  LIBRA_CHECK(false, "placer {} has no function", static_cast<int>(problem.options.placer));
  return {};
}

std::int64_t cap_of(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling,
                    const std::vector<std::int64_t>& other_work) {
  std::int64_t total = std::accumulate(other_work.begin(), other_work.end(), std::int64_t{0});
  for (const Block& block : tiling.blocks) total += block.cost * tiling.head_shards;
  return load_cap(total, options.tau_ppm, layout.workers());
}

}  // namespace

std::int64_t Placement::heaviest() const { return *std::max_element(load.begin(), load.end()); }

double Placement::max_over_mean() const {
  const std::int64_t total = std::accumulate(load.begin(), load.end(), std::int64_t{0});
  if (total == 0) return 1.0;
  return static_cast<double>(heaviest()) * static_cast<double>(load.size()) /
         static_cast<double>(total);
}

Placement place_tiles(const PlanOptions& options, const HomeLayout& layout, const Tiling& tiling,
                      const std::vector<std::int64_t>& other_work) {
  LIBRA_CHECK(other_work.empty() || other_work.size() == at(layout.workers()),
              "other work of {} workers in a pool of {}", other_work.size(), layout.workers());
  const PlacementProblem problem{options, layout, tiling,
                                 cap_of(options, layout, tiling, other_work), other_work};
  Placement placement = with_destinations(options, layout, tiling, destinations(problem));
  placement.cap = problem.cap;
  for (std::size_t worker = 0; worker < other_work.size(); ++worker) {
    placement.load[worker] += other_work[worker];
  }
  return placement;
}

Placement with_destinations(const PlanOptions& options, const HomeLayout& layout,
                            const Tiling& tiling, std::vector<std::int32_t> destination) {
  if (destination.size() != at(tiling.tiles())) {
    throw PlanError(
        fmt::format("{} destinations for {} tiles", destination.size(), tiling.tiles()));
  }
  Placement placement;
  placement.load.assign(at(layout.workers()), 0);
  placement.cap = cap_of(options, layout, tiling, {});
  for (std::int32_t tile = 0; tile < tiling.tiles(); ++tile) {
    const std::int32_t worker = destination[at(tile)];
    if (worker < 0 || worker >= layout.workers()) {
      throw PlanError(fmt::format("tile {} goes to worker {}: there are workers 0 to {}", tile,
                                  worker, layout.workers() - 1));
    }
    placement.load[at(worker)] += tiling.block_of(tile).cost;
  }
  placement.destination = std::move(destination);
  return placement;
}

}  // namespace libra
