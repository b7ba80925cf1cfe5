// A loop over independent tasks on a few threads.
//
//   parallel_for(100, threads, [&](std::size_t i) { results[i] = work(i); });
#pragma once

#include <cstddef>
#include <functional>

namespace libra {

/// Calls task(i) for i in [0, count), in no particular order, on `threads` threads (at least one;
/// 0: as many as the machine has; never more than 256). Tasks must not touch what others do. If
/// tasks throw, one of the exceptions is thrown again here after all threads have stopped.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& task);

}  // namespace libra
