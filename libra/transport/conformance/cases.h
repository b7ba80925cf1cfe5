// What every transport must do, as cases that each worker runs against its own endpoint (SPMD).
//
// A transport plugs in with a test that runs a case on all its workers, as threads or processes:
//
//   class MyConformance : public testing::TestWithParam<ConformanceCase> {};
//   TEST_P(MyConformance, Holds) {
//     run_worker(GetParam(), make_my_transport(GetParam().options()));    // on every worker
//   }
//   INSTANTIATE_TEST_SUITE_P(, MyConformance, testing::ValuesIn(conformance_cases()), case_name);
//
// Cases that end in a failure leave the transport unusable; each runs on a fresh one.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "libra/base/task_queue.h"
#include "libra/transport/transport.h"

namespace libra::conformance {

/// One worker's end, for the length of a case. `transport` is owned so that a case can destroy it.
struct Worker {
  std::unique_ptr<Transport> transport;
  TaskQueue stream;

  std::int32_t id() const { return transport->worker(); }
  std::int32_t count() const { return transport->workers(); }
};

struct ConformanceCase {
  const char* name = "";
  void (*run)(Worker&) = nullptr;
  std::int32_t min_workers = 1;
  /// 0: the case ends well, and a worker that waits in vain waits for long.
  std::chrono::milliseconds deadline{0};

  bool ends_in_failure() const { return deadline.count() > 0; }
  TransportOptions options() const;
};

std::vector<ConformanceCase> conformance_cases();  ///< all of them
std::vector<ConformanceCase> data_cases();         ///< what moves, and to where
std::vector<ConformanceCase> stream_cases();       ///< when it moves
std::vector<ConformanceCase> failure_cases();      ///< how it ends if it can't

/// Runs this worker's part. Returns at once where the group is too small for the case.
void run_worker(const ConformanceCase& test, std::unique_ptr<Transport> transport);

/// For INSTANTIATE_TEST_SUITE_P.
std::string case_name(const testing::TestParamInfo<ConformanceCase>& info);
std::ostream& operator<<(std::ostream& out, const ConformanceCase& test);

}  // namespace libra::conformance
