#include "libra/sim/overlap.h"

#include <algorithm>
#include <numeric>

namespace libra {
namespace {

PassInterval together(double begin, double compute, double exchange, double loss) {
  return {begin, begin + compute + loss * std::min(compute, exchange), begin + exchange};
}

}  // namespace

std::vector<PassInterval> overlapped_intervals(const ChunkedPassTimes& pass, double loss) {
  std::vector<PassInterval> intervals;
  intervals.reserve(pass.exchange_s.size() + 1);
  double begin = 0;
  for (std::size_t phase = 0; phase < pass.exchange_s.size(); ++phase) {
    double compute = phase == 0 ? pass.local_s : pass.chunk_compute_s;
    if (phase + 1 == pass.exchange_s.size()) compute = 0;
    intervals.push_back(together(begin, compute, pass.exchange_s[phase], loss));
    begin = intervals.back().end_s();
  }
  intervals.push_back(together(begin, pass.last_s, 0, loss));
  return intervals;
}

double overlapped_seconds(const ChunkedPassTimes& pass, double loss) {
  return overlapped_intervals(pass, loss).back().end_s();
}

double sequential_seconds(const ChunkedPassTimes& pass) {
  return pass.compute_s() + std::accumulate(pass.exchange_s.begin(), pass.exchange_s.end(), 0.0);
}

}  // namespace libra
