// The conformance suite on MPI: a program for mpirun, whose ranks are the workers. Every rank runs
// every test; rank 0 prints, the others only what fails.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

#include "libra/transport/conformance/cases.h"
#include "libra/transport/mpi/transport.h"

namespace libra::conformance {
namespace {

const MpiSession* g_session = nullptr;

class MpiConformance : public testing::TestWithParam<ConformanceCase> {};

TEST_P(MpiConformance, Holds) {
  run_worker(GetParam(), make_mpi_transport(*g_session, GetParam().options()));
}

INSTANTIATE_TEST_SUITE_P(, MpiConformance, testing::ValuesIn(conformance_cases()), case_name);

class PrintFailures final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", g_session->rank(), result.file_name(),
                 result.line_number(), result.message());
  }
};

int run(int* argc, char** argv, const MpiSession& session) {
  g_session = &session;
  testing::InitGoogleTest(argc, argv);
  if (session.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(std::make_unique<PrintFailures>().release());
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace libra::conformance

int main(int argc, char** argv) {
  const libra::MpiSession session(&argc, &argv);
  return libra::conformance::run(&argc, argv, session);
}
