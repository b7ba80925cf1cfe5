// How long a pass in M chunks takes on the workers of a pool, communication under computation.
//
//   compute    |  local  | chunk 0 | chunk 1 | ... | chunk M-1 |           | last |
//   exchange   | out 0 | out 1 |     | out 2, back 0 | ... | back M-2 | back M-1 |
//
// Phase k of the exchange takes chunk k out and brings chunk k - 2 back, on the same links. Two
// chunks fit into a guest's memory, so phases 0 and 1 leave at once. Phase k leaves when the home's
// guests have all computed chunk k - 2: a lane of copies goes from guest to guest in order, and
// waits for the slowest. Phases M and M + 1, which take nothing out, follow the worker's own
// computation: a worker's time is its own work and what that waits for, not the others' results.
// Computation with traffic beside it is slowed by a share of the traffic's time.
#pragma once

#include <cstdint>
#include <vector>

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

/// Some chunks of a guest need rows of a home.
struct Lending {
  std::int32_t home = 0;
  std::int32_t guest = 0;
};

/// A pass of all workers of a pool, each with equally many phases, at least three.
struct PoolPassTimes {
  std::vector<ChunkedPassTimes> workers;
  std::vector<Lending> lendings;
  /// Whether homes send as soon as guests have room (Transport::posts_ahead). Otherwise both must
  /// have come to that chunk themselves.
  bool posts_ahead = true;
};

/// In seconds from the beginning of the pass.
struct TimeSpan {
  double begin_s = 0;
  double end_s = 0;
};

/// What one worker does when.
struct PassTimeline {
  std::vector<TimeSpan> compute;   ///< local work, the chunks, the last work
  std::vector<TimeSpan> exchange;  ///< the phases; they end where their last transfer does

  double end_s() const { return compute.back().end_s; }
};

/// By worker. `loss`: Cluster::overlap_loss. Linear in phases x (workers + lendings).
std::vector<PassTimeline> overlapped_timelines(const PoolPassTimes& pass, double loss);

/// When a worker without partners ends.
double overlapped_seconds(const ChunkedPassTimes& pass, double loss);

/// The same one after the other: dispatch, computation, return, nothing beside anything.
double sequential_seconds(const ChunkedPassTimes& pass);

}  // namespace libra
