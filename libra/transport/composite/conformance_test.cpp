// The conformance suite on two in-process groups as one: neighbours over the first, the others over
// the second.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
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

INSTANTIATE_TEST_SUITE_P(Data, CompositeConformance, testing::ValuesIn(data_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Streams, CompositeConformance, testing::ValuesIn(stream_cases()),
                         case_name);

// Worker 0 sends worker 1, its neighbour, more than that expects; the others wait for worker 0 over
// the other transport.
std::string part_in_a_failure(Transport& transport) {
  TaskQueue stream;
  std::vector<std::byte> memory(64);
  const auto bytes = [&memory](std::int64_t count) {
    return StridedView{memory.data(), 1, count, count};
  };
  Exchange exchange{{1, Phase::kForwardDispatch, 0, 0}, {}, {}};
  if (transport.worker() == 0) {
    exchange.sends = {{1, bytes(64)}};
  } else {
    exchange.receives = {{0, bytes(transport.worker() == 1 ? 32 : 64)}};
  }
  std::string failure;
  try {
    transport.wait(transport.post(exchange, stream), stream);
    stream.synchronize();
  } catch (const TransportError& error) {
    failure = error.what();
    transport.abort(failure);  // as whoever runs a pass does
  }
  return failure;
}

TEST(Composite, AFailureOfOneReachesEveryoneThroughBoth) {
  const TransportOptions patient{std::chrono::seconds(60)};
  const auto begin = std::chrono::steady_clock::now();
  auto first = make_inproc_group(5, patient);
  auto second = make_inproc_group(5, patient);
  std::vector<std::string> failures(5);
  std::vector<std::thread> threads;
  threads.reserve(first.size());
  for (std::size_t w = 0; w < first.size(); ++w) {
    threads.emplace_back([&failures, w,
                          transport = make_composite(std::move(first[w]), std::move(second[w]),
                                                     near_of(static_cast<std::int32_t>(w), 5))] {
      failures[w] = part_in_a_failure(*transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_NE(failure, "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

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
