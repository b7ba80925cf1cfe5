// How large a plan may become that is read, where a few bytes can ask for much: one sample cut into
// 131,072 fragments, fetched by 65,536 workers. Checked before each step that allocates.
//
// These are no limits of planning: make_plan derives whatever pool_limits.h allows.
#pragma once

#include <cstdint>
#include <span>

#include "libra/plan/home_layout.h"
#include "libra/plan/placement.h"
#include "libra/plan/plan_options.h"
#include "libra/plan/tiling.h"

namespace libra {

/// Fragments, pieces times head shards, and fragments of all fetches. Each takes at most 64 bytes.
inline constexpr std::int64_t kMaxReadItems = std::int64_t{1} << 24;

/// Throw PlanError. Complexity: of what the next step of deriving a plan takes.
void require_readable_homes(const PlanOptions& options, std::span<const PackedSequence> sequences);
void require_readable_tiles(const PlanOptions& options, const Tiling& tiling);
void require_readable_fetches(const PlanOptions& options, const HomeLayout& layout,
                              const Tiling& tiling, const Placement& placement);

}  // namespace libra
