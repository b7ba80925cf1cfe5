// For this room's tests: small random pools that reach every kind of home, placer and head split.
//
//   for (std::uint64_t seed = 0; seed < 500; ++seed) {
//     SCOPED_TRACE(::testing::Message() << "seed " << seed);
//     const PoolProblem problem = random_problem(seed);
//     const PoolPlan plan = make_plan(problem.options, problem.sequences);
//   }
#pragma once

#include <cstdint>
#include <vector>

#include "libra/base/rng.h"
#include "libra/plan/pool_plan.h"

namespace libra::testing {

struct PoolProblem {
  PlanOptions options;
  std::vector<PackedSequence> sequences;
};

/// In [low, high].
std::int64_t between(Rng& rng, std::int64_t low, std::int64_t high);

/// Samples of length 0 and 1, lengths that no power of two divides, long ones, and padding.
PackedSequence random_sequence(Rng& rng, std::int64_t max_tokens);

/// Runs that cut the sequence anywhere, dealt to `parts` parts in any order.
std::vector<std::vector<TokenRange>> random_runs(Rng& rng, std::int64_t tokens, std::int32_t parts);

/// Legal options and 1 to 4 sequences of up to `max_tokens` tokens. Equal for equal arguments.
PoolProblem random_problem(std::uint64_t seed, std::int64_t max_tokens = 150);

}  // namespace libra::testing
