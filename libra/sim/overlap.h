// How long a pass in M chunks takes on the workers of a pool, communication under computation.
//
//   compute    |    local    | chunk 0 | chunk 1       | ... | chunk M-1  |            | last |
//   exchange   | out 0 | out 1 |       | out 2, back 0 | ... | back M - 2 | back M - 1 |
//
// Phase k of the exchange takes chunk k out and brings chunk k - 2 back, on the same links. Two
// chunks fit into a guest's memory, so phases 0 and 1 leave at once. Later ones find room when the
// guest has computed chunk k - 2. Each home copies to one guest after the other, from the worker
// after it on, and waits for each: what goes to the next ones, and all of the next phase, leaves
// after the slowest before them. Phases M and M + 1, which take nothing out, follow what they
// bring. A worker's time is its own work and what that waits for; results that come home are waited
// for only by the last work.
//
// Computation with traffic beside it is slowed by a share of the traffic's time.
#pragma once

#include <cstdint>
#include <vector>

#include "libra/sim/links.h"

namespace libra {

/// What a pass is to one worker.
struct ChunkedPassTimes {
  double local_s = 0;              ///< work that needs no exchange; runs first
  double chunk_compute_s = 0;      ///< of one chunk; all are alike
  std::vector<double> exchange_s;  ///< M + 2 phases: until all that it sends and receives is there
  double last_s = 0;               ///< work on what came back: additions of gradients

  /// Of the whole pass: computation alone.
  double compute_s() const {
    return local_s + chunk_compute_s * static_cast<double>(exchange_s.size() - 2) + last_s;
  }
};

/// Who sends to whom in a phase that takes a chunk out.
struct PhaseFlows {
  std::vector<Sending> lent;       ///< from homes
  std::vector<Sending> passed_on;  ///< from relays
};

/// A pass of all workers of a pool, at least one, each with equally many phases, at least three.
struct PoolPassTimes {
  std::vector<ChunkedPassTimes> workers;
  std::vector<PhaseFlows> flows;  ///< of phases 0 to M - 1, or none
  /// Whether homes and relays send beside what they compute (Transport::posts_ahead). Otherwise
  /// both ends must have computed chunk k - 2 before phase k; relays do their part of phase 0
  /// before their local work and that of phase 1 after it.
  bool posts_ahead = true;
};

/// In seconds from the beginning of the pass.
struct TimeSpan {
  double begin_s = 0;
  double end_s = 0;
};

/// What one worker does when; spans of one kind follow each other.
struct PassTimeline {
  std::vector<TimeSpan> compute;   ///< local work, the chunks, the last work
  std::vector<TimeSpan> exchange;  ///< the phases: of arrivals, where something arrives

  double end_s() const { return compute.back().end_s; }
};

/// By worker. `loss`: Cluster::overlap_loss. Linear in workers x phases + flows.
std::vector<PassTimeline> overlapped_timelines(const PoolPassTimes& pass, double loss);

/// When a worker without partners ends.
double overlapped_seconds(const ChunkedPassTimes& pass, double loss);

/// The same one after the other: dispatch, computation, return, nothing beside anything.
double sequential_seconds(const ChunkedPassTimes& pass);

}  // namespace libra
