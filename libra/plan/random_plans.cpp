#include "libra/plan/random_plans.h"

#include <algorithm>
#include <array>

#include "libra/base/error.h"
#include "libra/base/index.h"

namespace libra::testing {
namespace {

template <typename T, std::size_t N>
const T& pick(Rng& rng, const std::array<T, N>& values) {
  return values[rng.below(N)];
}

constexpr std::array<AttentionShape, 9> kShapes = {{{8, 8, 4, 4},
                                                    {8, 2, 4, 4},
                                                    {8, 1, 4, 4},
                                                    {4, 2, 8, 4},
                                                    {12, 4, 2, 6},
                                                    {6, 3, 4, 4},
                                                    {16, 4, 4, 4},
                                                    {40, 8, 1, 1},
                                                    {1, 1, 16, 16}}};

bool obeys_rules(const PlanOptions& options) {
  try {
    check_options(options, 1);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Draws until the rules are obeyed: every legal combination is as likely as every other.
PlanOptions random_options(Rng& rng) {
  PlanOptions options;
  do {
    options.shape = pick(rng, kShapes);
    options.tp = static_cast<std::int32_t>(between(rng, 1, 2));
    options.cp = options.tp * static_cast<std::int32_t>(between(rng, 1, 4));
    options.head_shards = static_cast<std::int32_t>(between(rng, 1, options.shape.q_heads));
    options.chunks = static_cast<std::int32_t>(between(rng, 1, options.shape.q_heads));
    options.placer = static_cast<PlacerKind>(rng.below(5));
  } while (!obeys_rules(options));
  options.storage = static_cast<DType>(rng.below(4));
  options.home = static_cast<HomeKind>(rng.below(4));
  options.block_tokens = between(rng, 1, 40);
  options.fetch = static_cast<Fetch>(rng.below(2));
  options.tau_ppm = static_cast<std::int32_t>(between(rng, 0, 300'000));
  options.backward = static_cast<BackwardMode>(rng.below(2));
  options.return_lse = rng.below(2) == 0;
  options.local_first = rng.below(2) == 0;
  options.max_tile_pairs = rng.below(3) == 0 ? between(rng, 1, 2000) : 0;
  options.gpus_per_node = static_cast<std::int32_t>(between(rng, 1, 9));
  options.inter_node_weight = static_cast<std::int32_t>(between(rng, 0, 3));
  options.search_us = static_cast<std::int32_t>(between(rng, 0, 20));
  return options;
}

}  // namespace

std::int64_t between(Rng& rng, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(high - low + 1)));
}

PackedSequence random_sequence(Rng& rng, std::int64_t max_tokens) {
  constexpr std::array<std::int64_t, 8> kLengths = {0, 1, 1, 2, 7, 16, 89, 137};
  PackedSequence sequence{between(rng, 0, max_tokens), {}};
  const std::int64_t samples = between(rng, 0, 12);
  std::int64_t left = sequence.tokens;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t wanted = rng.below(4) == 0 ? between(rng, 0, left) : pick(rng, kLengths);
    sequence.sample_tokens.push_back(std::min(wanted, left));
    left -= sequence.sample_tokens.back();
  }
  return sequence;
}

std::vector<std::vector<TokenRange>> random_runs(Rng& rng, std::int64_t tokens,
                                                 std::int32_t parts) {
  std::vector<TokenRange> runs;
  for (std::int64_t begin = 0; begin < tokens;) {
    const std::int64_t end = std::min(tokens, begin + between(rng, 1, 50));
    runs.push_back({begin, end});
    begin = end;
  }
  rng.shuffle(runs);
  std::vector<std::vector<TokenRange>> of_part(at(parts));
  for (const TokenRange run : runs) of_part[rng.below(of_part.size())].push_back(run);
  return of_part;
}

PoolProblem random_problem(std::uint64_t seed, std::int64_t max_tokens) {
  Rng rng(seed);
  PoolProblem problem{random_options(rng), {}};
  const std::int64_t replicas = between(rng, 1, 4);
  for (std::int64_t replica = 0; replica < replicas; ++replica) {
    problem.sequences.push_back(random_sequence(rng, max_tokens));
    if (problem.options.home != HomeKind::kExplicit) continue;
    problem.options.explicit_runs.push_back(
        random_runs(rng, problem.sequences.back().tokens, problem.options.cp / problem.options.tp));
  }
  problem.options.node_fetch = rng.below(2) == 0;
  return problem;
}

}  // namespace libra::testing
