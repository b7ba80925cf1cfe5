// The conformance suite on the in-process transport: the workers are threads.
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "libra/transport/conformance/cases.h"
#include "libra/transport/inproc/transport.h"

namespace libra::conformance {
namespace {

class InprocConformance : public testing::TestWithParam<ConformanceCase> {};

void run_group(const ConformanceCase& test, std::int32_t workers) {
  std::vector<std::thread> threads;
  for (auto& endpoint : make_inproc_group(workers, test.options()))
    threads.emplace_back([&test, transport = std::move(endpoint)]() mutable {
      run_worker(test, std::move(transport));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(InprocConformance, HoldsForTwoWorkers) { run_group(GetParam(), 2); }
TEST_P(InprocConformance, HoldsForFiveWorkers) { run_group(GetParam(), 5); }
TEST_P(InprocConformance, HoldsForOneWorker) {
  if (GetParam().min_workers == 1) run_group(GetParam(), 1);
}

INSTANTIATE_TEST_SUITE_P(, InprocConformance, testing::ValuesIn(conformance_cases()), case_name);

}  // namespace
}  // namespace libra::conformance
