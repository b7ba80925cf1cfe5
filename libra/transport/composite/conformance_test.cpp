// The conformance suite on two in-process groups as one: neighbours over the first, the others over
// the second.
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/transport/composite/composite_transport.h"
#include "libra/transport/conformance/cases.h"
#include "libra/transport/inproc/transport.h"

namespace libra::conformance {
namespace {

class CompositeConformance : public testing::TestWithParam<ConformanceCase> {};

// Workers 2n and 2n + 1 share a node.
std::vector<bool> near_of(std::int32_t worker, std::int32_t workers) {
  std::vector<bool> near;
  near.reserve(static_cast<std::size_t>(workers));
  for (std::int32_t peer = 0; peer < workers; ++peer) near.push_back(peer / 2 == worker / 2);
  return near;
}

void run_group(const ConformanceCase& test, std::int32_t workers) {
  auto first = make_inproc_group(workers, test.options());
  auto second = make_inproc_group(workers, test.options());
  std::vector<std::thread> threads;
  threads.reserve(first.size());
  for (std::size_t w = 0; w < first.size(); ++w) {
    threads.emplace_back([&test, transport = make_composite(
                                     std::move(first[w]), std::move(second[w]),
                                     near_of(static_cast<std::int32_t>(w), workers))]() mutable {
      run_worker(test, std::move(transport));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(CompositeConformance, HoldsForFiveWorkers) { run_group(GetParam(), 5); }

INSTANTIATE_TEST_SUITE_P(, CompositeConformance, testing::ValuesIn(conformance_cases()), case_name);

TEST(Composite, TransportsOfDifferentWorkersAreRefused) {
  auto two = make_inproc_group(2, {});
  auto three = make_inproc_group(3, {});
  EXPECT_THROW(make_composite(std::move(two[0]), std::move(three[0]), {true, true}), ConfigError);
  auto again = make_inproc_group(2, {});
  EXPECT_THROW(make_composite(std::move(two[1]), std::move(again[0]), {true, true}), ConfigError);
  auto other = make_inproc_group(2, {});
  auto another = make_inproc_group(2, {});
  EXPECT_THROW(make_composite(std::move(other[0]), std::move(another[0]), {true}), ConfigError);
}

}  // namespace
}  // namespace libra::conformance
