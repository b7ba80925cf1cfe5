// How long a worker takes for a pass in M chunks, communication under computation.
//
//   |  local   | compute 0 | compute 1 | ... | compute M-1 |            | last |
//   | dispatch 0| dispatch 1 | dispatch 2, return 0 | ... | return M-2 | return M-1 |
//
// While chunk i computes, chunk i + 1 comes in and chunk i - 1 goes out, on the same links. An
// interval lasts as long as the longer of its two sides; computation with traffic beside it is
// slowed by a share of the traffic's time. Only dispatch 0, as far as it is longer than the local
// work, and return M - 1 are exposed by construction; the rest if links are slower than chips.
#pragma once

#include <vector>

namespace libra {

struct ChunkedPassTimes {
  double local_s = 0;          ///< work that needs no exchange; runs first
  double chunk_compute_s = 0;  ///< of one chunk; all are alike
  std::vector<double>
      exchange_s;     ///< M + 2 phases: dispatch 0, beside chunk 0 to M - 1, return M - 1
  double last_s = 0;  ///< work on what came back: additions of gradients

  /// Of the whole pass: computation alone.
  double compute_s() const {
    return local_s + chunk_compute_s * static_cast<double>(exchange_s.size() - 2) + last_s;
  }
};

/// One interval of the picture, in seconds from the beginning of the pass.
struct PassInterval {
  double begin_s = 0;
  double compute_end_s = 0;   ///< begin_s where nothing is computed
  double exchange_end_s = 0;  ///< likewise
  double end_s() const { return compute_end_s > exchange_end_s ? compute_end_s : exchange_end_s; }
};

/// The local work, the chunks, the last return, and the last work. Requires at least three phases.
/// `loss`: Cluster::overlap_loss.
std::vector<PassInterval> overlapped_intervals(const ChunkedPassTimes& pass, double loss);

/// When the last interval ends.
double overlapped_seconds(const ChunkedPassTimes& pass, double loss);

/// The same one after the other: dispatch, computation, return, nothing beside anything.
double sequential_seconds(const ChunkedPassTimes& pass);

}  // namespace libra
