// Searches the pool size P, head shards H, block B, tau, chunks M, placer and home layout that
// train fastest under a memory cap, by simulating method `libra`.
//
//   const TuneResult result = tune(scenario, windows, {.memory_cap_bytes = 120e9});
//   result.ranked.front().candidate;    // paste its options
//
// In three rounds: P x H x B; then tau, M, placer and home layout around the best; both on a few
// windows, from even ones to uneven ones; then the best on all windows. Every round keeps the best
// of each P. Pool sizes beyond the first whose pools are even already (R - 1 <= kEvenPools by VRSP)
// and the next are not tried: they could only move more. All candidates see the same windows, so
// that their differences are not luck of the draw.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libra/corpus/packed_sequence.h"
#include "libra/sim/scenario.h"
#include "libra/sim/simulate.h"

namespace libra {

struct Candidate {
  std::int32_t pool = 1;
  std::int64_t block_tokens = 4096;
  std::int32_t head_shards = 2;
  std::int32_t chunks = 2;  ///< of the first round, too; the second tries 1 to 8
  std::int32_t tau_ppm = 30'000;
  PlacerKind placer = PlacerKind::kBalanced;
  HomeKind home = HomeKind::kContiguous;

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// As the program's options, to paste: "--pool 8 --block 4K ...".
std::string candidate_options(const Candidate& candidate);

struct Verdict {
  Candidate candidate;
  double step_s = 0;            ///< mean over the windows
  double step_s_deviation = 0;  ///< over the windows
  double tokens_per_gpu_s = 0;
  double memory_bytes = 0;  ///< of the fullest GPU
  /// Of the step time over the best's: mean and standard error of the paired differences.
  double behind = 0;
  double behind_error = 0;
  std::vector<double> step_seconds;  ///< by window
};

/// How even VRSP makes pools of P.
struct PoolEvenness {
  std::int32_t pool = 1;
  double r_minus_1 = 0;  ///< mean over the windows
};

struct TuneOptions {
  double memory_cap_bytes = 0;     ///< 0: the cluster's GPU memory
  double wanted_r_minus_1 = 0.01;  ///< for needed_pool
  int threads = 0;                 ///< 0: as many as the machine has
  /// Called with how many simulations are done and how many this round has, from any thread.
  std::function<void(std::int64_t done, std::int64_t total)> advance;
};

struct TuneResult {
  std::vector<Verdict> ranked;  ///< fastest first, all under the cap
  std::int64_t candidates = 0;  ///< simulated
  std::int64_t over_cap = 0;    ///< of these, left out
  double cap_bytes = 0;
  double heaviest_over_mean = 0;       ///< sequence: below this P no grouping can be even
  std::vector<PoolEvenness> evenness;  ///< of every P that divides GBS
  std::int32_t needed_pool = 0;        ///< smallest P of these with the wanted R
};

inline constexpr double kEvenPools = 0.002;

/// The scenario with the candidate's options.
Scenario with_candidate(Scenario scenario, const Candidate& candidate);

/// `scenario`: all but what is searched is taken as it is. Throws ConfigError if nothing fits under
/// the memory cap; it says what would.
TuneResult tune(const Scenario& scenario, const std::vector<std::vector<PackedSequence>>& windows,
                const TuneOptions& options);

}  // namespace libra
