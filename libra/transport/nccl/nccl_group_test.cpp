// Workers that are threads of one process, a GPU each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "libra/base/error.h"
#include "libra/base/index.h"
#include "libra/cuda/device.h"
#include "libra/transport/nccl/nccl_transport.h"
#include "libra/transport/peer/peer_cases.h"

namespace libra {
namespace {

class NcclGroup : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (device_count() < 2) GTEST_SKIP() << "NCCL needs a GPU per worker, and there are not two";
  }
};

TEST_P(NcclGroup, Holds) {
  const peer::PeerCase& test = peer::peer_cases()[GetParam()];
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::vector<std::int32_t> devices(at(device_count()));
  std::iota(devices.begin(), devices.end(), 0);
  auto endpoints = make_nccl_group(devices, test.options());
  std::vector<std::string> errors(devices.size());
  std::vector<std::jthread> threads;
  threads.reserve(devices.size());
  for (std::size_t worker = 0; worker < devices.size(); ++worker) {
    threads.emplace_back([&, worker] {
      errors[worker] = play(test, std::move(endpoints[worker]), devices[worker], seed);
    });
  }
  threads.clear();
  for (std::size_t worker = 0; worker < devices.size(); ++worker) {
    EXPECT_EQ(errors[worker], "") << "worker " << worker;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, NcclGroup,
                         ::testing::Range(std::size_t{0}, peer::peer_cases().size()),
                         [](const auto& test) { return peer::peer_cases()[test.param].name; });

TEST(NcclGroupDevices, AGpuTakesOneWorker) {
  EXPECT_THROW(make_nccl_group({0, 0}, {}), ConfigError);
  EXPECT_THROW(make_nccl_group({}, {}), ConfigError);
}

}  // namespace
}  // namespace libra
