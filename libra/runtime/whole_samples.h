// Which samples one worker computes as a whole: their gradients have one source, and are written to
// where they belong. Those of others are added up in scratch, which is cleared before and converted
// after: some 20 bytes an element, a quarter of the time of short samples.
//
// A sample is whole if its rows lie one after the other in one part, and everything that the worker
// is home of stayed with it. Then nobody else uses its keys in the worker's heads: not even what
// other workers of the part (tensor parallelism) send here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libra/attention/attention.h"
#include "libra/plan/home_layout.h"

namespace libra {

struct WholeLimits {
  /// Of a sample: longer ones gain little, and would need as much of a backend's scratch memory.
  std::int64_t max_rows = 16384;
  /// Of neighbouring whole samples together: what lies between is cleared and converted apart, and
  /// fewer rows are not worth these launches.
  std::int64_t least_rows = 2048;
};

struct WholeSamples {
  std::vector<bool> contains;    ///< by sample of the plan
  std::vector<Entry> entries;    ///< a top-left causal square each, in row order; heads from 0 on
  std::vector<TokenRange> rows;  ///< theirs, neighbours joined
};

/// `fragments`: of one part, in row order. `stayed`: by sample, whether all tiles of the worker's
/// heads did. O(samples of the plan).
WholeSamples find_whole_samples(const HomeLayout& layout, std::span<const Fragment> fragments,
                                const std::vector<bool>& stayed, const WholeLimits& limits);

}  // namespace libra
