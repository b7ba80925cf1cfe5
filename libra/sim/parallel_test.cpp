#include "libra/sim/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace libra {
namespace {

TEST(ParallelFor, DoesEveryTaskOnce) {
  for (const int threads : {0, 1, 3, 64}) {
    std::vector<int> done(50, 0);
    parallel_for(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    EXPECT_EQ(done, std::vector<int>(50, 1)) << threads;
  }
}

TEST(ParallelFor, TakesNoMoreThreadsThanMachinesHave) {
  std::vector<int> done(100'000, 0);
  parallel_for(done.size(), 100'000, [&](std::size_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(done.size(), 1));
}

TEST(ParallelFor, ThrowsWhatATaskThrewAndStops) {
  std::atomic<int> done = 0;
  EXPECT_THROW(parallel_for(1000, 2,
                            [&](std::size_t i) {
                              if (i == 3) throw std::runtime_error("task 3");
                              ++done;
                            }),
               std::runtime_error);
  EXPECT_LT(done, 1000);
}

TEST(ParallelFor, HasNothingToDoForNoTask) {
  parallel_for(0, 2, [](std::size_t) { FAIL(); });
}

}  // namespace
}  // namespace libra
