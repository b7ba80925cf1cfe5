#include "libra/sim/overlap.h"

#include <algorithm>
#include <numeric>

namespace libra {
namespace {

double together(double compute, double exchange, double loss) {
  return std::max(compute + loss * std::min(compute, exchange), exchange);
}

}  // namespace

double overlapped_seconds(const ChunkedPassTimes& pass, double loss) {
  double total = together(pass.local_s, pass.exchange_s.front(), loss);
  for (std::size_t phase = 1; phase + 1 < pass.exchange_s.size(); ++phase) {
    total += together(pass.chunk_compute_s, pass.exchange_s[phase], loss);
  }
  return total + pass.exchange_s.back();
}

double sequential_seconds(const ChunkedPassTimes& pass) {
  return pass.compute_s() + std::accumulate(pass.exchange_s.begin(), pass.exchange_s.end(), 0.0);
}

}  // namespace libra
