// A pool of two hosts as Python builds it: within a host a transport of its workers, between hosts
// one of all.
#include "libra/transport/composite/part_transport.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/base/task_queue.h"
#include "libra/transport/composite/composite_transport.h"
#include "libra/transport/conformance/cases.h"
#include "libra/transport/inproc/transport.h"

namespace libra::conformance {
namespace {

class PartConformance : public testing::TestWithParam<ConformanceCase> {};

// Host 0 has workers 0 and 3, host 1 workers 1, 2 and 4.
const std::vector<std::vector<std::int32_t>> kHosts = {{0, 3}, {1, 2, 4}};

std::vector<std::unique_ptr<Transport>> make_hosts(const TransportOptions& options) {
  auto far = make_inproc_group(5, options);
  std::vector<std::unique_ptr<Transport>> endpoints(5);
  for (const auto& members : kHosts) {
    std::vector<bool> near(5, false);
    for (const std::int32_t member : members) near[at(member)] = true;
    auto of_host = make_inproc_group(static_cast<std::int32_t>(members.size()), options);
    for (std::size_t number = 0; number < members.size(); ++number) {
      const std::size_t worker = at(members[number]);
      endpoints[worker] = make_composite(make_part(std::move(of_host[number]), members, 5),
                                         std::move(far[worker]), near);
    }
  }
  return endpoints;
}

TEST_P(PartConformance, HoldsForFiveWorkersOfTwoHosts) {
  std::vector<std::thread> threads;
  for (std::unique_ptr<Transport>& endpoint : make_hosts(GetParam().options())) {
    threads.emplace_back([&test = GetParam(), transport = std::move(endpoint)]() mutable {
      run_worker(test, std::move(transport));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Data, PartConformance, testing::ValuesIn(data_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(Streams, PartConformance, testing::ValuesIn(stream_cases()), case_name);

TEST(Part, HasItsNumberInThePoolAndReachesItsMembersOnly) {
  const auto part = make_part(std::move(make_inproc_group(2, {})[1]), {1, 3}, 4);
  EXPECT_EQ(part->worker(), 3);
  EXPECT_EQ(part->workers(), 4);
  TaskQueue stream;
  std::byte byte{};
  for (const std::int32_t peer : {0, 2, 4, -1}) {
    Exchange exchange{{1, Phase::kForwardDispatch, 0, 0}, {{peer, {&byte, 1, 1, 1}, -1}}, {}};
    EXPECT_THROW(part->post(exchange, stream), ConfigError) << peer;
  }
}

TEST(Part, RefusesMembersThatAreNotItsWorkers) {
  const std::vector<std::vector<std::int32_t>> wrong = {{0}, {0, 1, 2}, {1, 1}, {0, 4}, {-1, 0}};
  for (const auto& members : wrong) {
    EXPECT_THROW(make_part(std::move(make_inproc_group(2, {})[0]), members, 4), ConfigError);
  }
}

}  // namespace
}  // namespace libra::conformance
